//! What a daemon writes into the lock files that it holds, so that a client which cannot reach it still knows of it.
//!
//! Three lines: the process id, the socket, and `serving` or `draining` with the second of the Unix epoch at which the
//! drain ends at the latest. The lock itself says whether any of that is true: a file that nobody holds locked tells of a
//! daemon that is gone.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest record that is read, in bytes; a socket's path is far shorter.
pub const MAX_RECORD_BYTES: u64 = 4096;

/// What a lock file says of the daemon that holds it. What it does not say is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The daemon's process.
    pub pid: Option<u32>,
    /// The socket that it serves.
    pub socket: Option<PathBuf>,
    /// When its drain ends at the latest, where it drains.
    pub drains_until: Option<SystemTime>,
}

impl Record {
    /// Describes this process, which serves `socket`.
    #[must_use]
    pub fn of_this_process(socket: &Path) -> Self {
        Self {
            pid: Some(std::process::id()),
            socket: Some(socket.to_owned()),
            drains_until: None,
        }
    }

    /// Returns the record as it is written.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self
            .pid
            .map_or_else(String::new, |pid| pid.to_string())
            .into_bytes();
        bytes.push(b'\n');
        if let Some(socket) = &self.socket {
            bytes.extend(socket.as_os_str().as_bytes());
        }
        let state = match self.drains_until {
            None => "serving".to_owned(),
            Some(until) => {
                let since = until.duration_since(UNIX_EPOCH).unwrap_or_default();
                format!("draining {}", since.as_secs())
            }
        };
        bytes.extend(format!("\n{state}\n").into_bytes());
        bytes
    }

    /// Reads a record; a damaged or older one says less.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let pid = lines
            .next()
            .and_then(|line| std::str::from_utf8(line).ok())
            .and_then(|line| line.trim().parse().ok());
        let socket = lines
            .next()
            .filter(|line| line.starts_with(b"/"))
            .map(|line| PathBuf::from(OsString::from_vec(line.to_vec())));
        let drains_until = lines
            .next()
            .and_then(|line| std::str::from_utf8(line).ok())
            .and_then(|line| line.strip_prefix("draining ")?.parse().ok())
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Self {
            pid,
            socket,
            drains_until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let serving = Record::of_this_process(Path::new("/run/a b.sock"));
        assert_eq!(Record::parse(&serving.to_bytes()), serving);
        let draining = Record {
            drains_until: Some(UNIX_EPOCH + Duration::from_secs(1_700_000_000)),
            ..serving
        };
        assert_eq!(Record::parse(&draining.to_bytes()), draining);
    }

    #[test]
    fn older_and_damaged_records_say_less() {
        let only_pid = Record {
            pid: Some(12),
            ..Record::default()
        };
        assert_eq!(Record::parse(b"12\n"), only_pid);
        assert_eq!(Record::parse(b"12\nrelative\nasleep\n"), only_pid);
        for damaged in [
            &b""[..],
            b"\n\n\n",
            b"-3\n",
            b"\xff\xfe\n\xff\ndraining x\n",
            b"99999999999\n",
        ] {
            assert_eq!(Record::parse(damaged), Record::default(), "{damaged:?}");
        }
        let far = format!("1\n/s\ndraining {}\n", u64::MAX);
        assert_eq!(Record::parse(far.as_bytes()).drains_until, None);
    }
}
