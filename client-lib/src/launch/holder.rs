//! The daemon that holds a lock: who it is, where it serves, and whether it is ending, as it says in its lock file. That is
//! known of a daemon that does not answer, too, or that was started where the environment names another socket.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use tandem_proto::lock::{MAX_RECORD_BYTES, Record};
use tandem_proto::paths::Paths;

/// A daemon that lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its process, where its lock file says so.
    pub pid: Option<u32>,
    /// The socket that it serves, where its lock file says so.
    pub socket: Option<PathBuf>,
    /// For how long it may still finish requests, where it takes no new ones and ends.
    pub drains_for: Option<Duration>,
}

impl Holder {
    /// Looks for the daemon of these paths: the one that has their socket, else the one of this user.
    #[must_use]
    pub fn find(paths: &Paths) -> Option<Self> {
        let user = || of(paths.user_lock.as_deref()?);
        of(&paths.lock).or_else(user)
    }

    /// Says whether a signal has stopped it, where the system tells.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        let Some(pid) = self.pid else { return false };
        // The name, in parentheses, may hold anything; the state follows.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, fields)| fields.starts_with(['T', 't']))
    }
}

/// Returns the socket to call: that of the daemon of this user, wherever that is, else the one of these paths.
#[must_use]
pub fn socket(paths: &Paths) -> PathBuf {
    let holder = paths.user_lock.as_ref().and_then(|_| Holder::find(paths));
    holder
        .and_then(|holder| holder.socket)
        .unwrap_or_else(|| paths.socket.clone())
}

/// Reads the file at `path`, where somebody holds it locked.
fn of(path: &Path) -> Option<Holder> {
    // Neither a link nor something to wait for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    // Who writes here says which process is to end: that has to be this user.
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        // Nobody has it; it is free again when the file is closed.
        Ok(()) | Err(TryLockError::Error(_)) => return None,
    }
    let mut bytes = Vec::new();
    // Who it is remains unknown.
    let _unread = file.take(MAX_RECORD_BYTES).read_to_end(&mut bytes);
    let record = Record::parse(&bytes);
    let left = |until: SystemTime| until.duration_since(SystemTime::now()).unwrap_or_default();
    Some(Holder {
        pid: record.pid,
        socket: record.socket,
        drains_for: record.drains_until.map(left),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_counts_while_it_is_locked() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = Paths::under(directory.path());
        assert_eq!(Holder::find(&paths), None, "no file");
        std::fs::create_dir_all(directory.path().join("run")).expect("a directory");
        let record = Record {
            pid: Some(std::process::id()),
            socket: Some("/s".into()),
            drains_until: None,
        };
        std::fs::write(&paths.lock, record.to_bytes()).expect("a file");
        assert_eq!(
            Holder::find(&paths),
            None,
            "left by a daemon whose process id somebody else has by now"
        );
        let file = File::open(&paths.lock).expect("it is there");
        file.lock().expect("it is free");
        let holder = Holder::find(&paths).expect("it is held");
        assert_eq!((holder.pid, holder.drains_for), (record.pid, None));
        assert!(!holder.is_stopped());
        assert_eq!(socket(&paths), paths.socket, "the place is a choice");
    }

    #[test]
    fn what_is_no_file_of_ours_says_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = Paths::under(directory.path());
        std::fs::create_dir_all(directory.path().join("run")).expect("a directory");
        let elsewhere = directory.path().join("elsewhere");
        let record = Record {
            pid: Some(1),
            ..Record::default()
        };
        std::fs::write(&elsewhere, record.to_bytes()).expect("a file");
        let file = File::open(&elsewhere).expect("it is there");
        file.lock().expect("it is free");
        std::os::unix::fs::symlink(&elsewhere, &paths.lock).expect("a link");
        assert_eq!(Holder::find(&paths), None, "a link");
        std::fs::remove_file(&paths.lock).expect("it is there");
        let made = std::process::Command::new("mkfifo")
            .arg(&paths.lock)
            .status();
        assert!(made.expect("mkfifo can be run").success());
        assert_eq!(
            Holder::find(&paths),
            None,
            "a pipe, which is not waited for"
        );
    }

    #[test]
    fn the_users_daemon_is_found_wherever_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut paths = Paths::under(directory.path());
        let user = directory.path().join("user.lock");
        paths.user_lock = Some(user.clone());
        let record = Record {
            socket: Some("/elsewhere/s".into()),
            ..Record::default()
        };
        std::fs::write(&user, record.to_bytes()).expect("a file");
        assert_eq!(socket(&paths), paths.socket);
        let file = File::open(&user).expect("it is there");
        file.lock().expect("it is free");
        assert_eq!(socket(&paths), Path::new("/elsewhere/s"));
    }
}
