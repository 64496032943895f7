//! One daemon per socket, and one per user: advisory locks on files that say who holds them.
//!
//! A file stays when the daemon ends. Removing it would let a third process lock a new file while a second one still
//! waits on the old. Somebody else may remove it all the same; then it is made and locked again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tandem_proto::lock::{MAX_RECORD_BYTES, Record};

use super::ListenError;

/// A client that looks whether the lock is held has it for a moment itself.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// Held until dropped, or until the process ends however it does.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Locks the file at `path` for the daemon that serves `socket`.
    pub(super) fn acquire(path: &Path, socket: &Path) -> Result<Self, ListenError> {
        let failed = |action| move |source| ListenError::io(action, path, source);
        for tried in 1.. {
            let file = open(path).map_err(failed("open the lock file"))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) if tried < TRIES => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(Errno::WOULDBLOCK) => {
                    let holder = read(&file);
                    return Err(ListenError::AlreadyRunning {
                        socket: holder.socket.unwrap_or_else(|| socket.to_owned()),
                        pid: holder
                            .pid
                            .map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
                    });
                }
                Err(error) => return Err(ListenError::io("lock", path, error.into())),
            }
            let lock = Self {
                file,
                path: path.to_owned(),
            };
            // Somebody may have removed it between the two steps; then others would lock another file.
            if lock.is_in_place() || tried >= TRIES {
                lock.write(&Record::of_this_process(socket));
                return Ok(lock);
            }
        }
        unreachable!("every way through the loop's last turn returns")
    }

    /// Whether the file is still where others look for it.
    pub(super) fn is_in_place(&self) -> bool {
        let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let ours = self.file.metadata().map(identity);
        let there = fs::symlink_metadata(&self.path).map(identity);
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says who holds it. The lock counts without that: a full disk keeps no daemon from serving.
    pub(super) fn write(&self, record: &Record) {
        let bytes = record.to_bytes();
        let written = self
            .file
            .write_all_at(&bytes, 0)
            .and_then(|()| self.file.set_len(bytes.len() as u64));
        if let Err(error) = written {
            tracing::warn!(file = %self.path.display(), %error, "the lock file does not say who holds it");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

fn read(file: &File) -> Record {
    let mut bytes = Vec::new();
    let _unknown = file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes);
    Record::parse(&bytes)
}

/// The lock of the user's one daemon, whatever its socket is.
#[derive(Debug)]
pub struct UserLock(Lock);

impl UserLock {
    /// Takes the lock for the daemon that serves `socket`. None where the file cannot be made, such as in a home directory
    /// that cannot be written to: the lock beside the socket has to be enough then.
    ///
    /// # Errors
    /// Returns [`ListenError::AlreadyRunning`] where another daemon has it.
    pub fn acquire(path: &Path, socket: &Path) -> Result<Option<Self>, ListenError> {
        let made = path.parent().map_or(Ok(()), |directory| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
        });
        if let Err(error) = made {
            tracing::warn!(file = %path.display(), %error, "no lock for this user's one daemon");
            return Ok(None);
        }
        match Lock::acquire(path, socket) {
            Ok(lock) => Ok(Some(Self(lock))),
            Err(error @ ListenError::AlreadyRunning { .. }) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "no lock for this user's one daemon");
                Ok(None)
            }
        }
    }

    pub(super) fn into_lock(self) -> Lock {
        self.0
    }
}
