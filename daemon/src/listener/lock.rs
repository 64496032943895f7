//! One daemon per socket: an advisory lock on a file beside it that holds the owner's pid.
//!
//! The file stays when the daemon ends. Removing it would let a third process lock a new file while a second one still
//! waits on the old.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::ListenError;

/// Held until dropped, or until the process ends however it does.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks the file at `path` for the daemon that serves `socket`.
    pub(super) fn acquire(path: &Path, socket: &Path) -> Result<Self, ListenError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(|source| ListenError::io("open the lock file", path, source))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(ListenError::AlreadyRunning {
                    socket: socket.to_owned(),
                    pid: read_pid(&mut file),
                });
            }
            Err(error) => return Err(ListenError::io("lock", path, error.into())),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|source| ListenError::io("write the lock file", path, source))?;
        Ok(Self { _file: file })
    }
}

fn read_pid(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(32).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}
