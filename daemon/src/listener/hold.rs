//! What keeps the socket ours while the daemon lives, and brings it back where it went: locks, and the socket's file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use tandem_proto::lock::Record;

use super::lock::{Lock, UserLock};
use super::{ListenError, check_length, prepare_directory, remove_stale};

/// Keeps the locks, and removes a socket file that we made when it is dropped.
#[derive(Debug)]
pub struct SocketHold {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Device and inode of the socket file we made; `None`: it is not ours to remove, nor to make again.
    made: Option<(u64, u64)>,
    /// Of the socket that somebody else has made.
    given: Option<(u64, u64)>,
    lock: Lock,
    user: Option<Lock>,
}

/// Where clients stand with the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// They find it.
    InPlace,
    /// They do not, and it can be made again.
    Lost,
    /// They do not, and it is the service manager's.
    TakenAway,
}

impl SocketHold {
    /// Holds a socket that a service manager has made.
    pub(super) fn given(path: PathBuf, lock: Lock) -> Self {
        let given = identity(&path);
        Self::new(path, None, given, lock)
    }

    fn new(path: PathBuf, made: Option<(u64, u64)>, given: Option<(u64, u64)>, lock: Lock) -> Self {
        let state = State {
            made,
            given,
            lock,
            user: None,
        };
        Self {
            path,
            state: Mutex::new(state),
        }
    }

    /// Makes the socket under the lock.
    pub(super) fn make(path: &Path, lock: Lock) -> Result<(UnixListener, Self), ListenError> {
        let (listener, made) = bind(path)?;
        Ok((listener, Self::new(path.to_owned(), Some(made), None, lock)))
    }

    pub(super) fn set_user_lock(&self, user: Option<UserLock>) {
        crate::lock(&self.state).user = user.map(UserLock::into_lock);
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files that have to stay where they are.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let state = crate::lock(&self.state);
        let mut files = vec![self.path.clone()];
        files.extend(state.user.as_ref().map(|lock| lock.path().to_owned()));
        files
    }

    /// Looks whether clients find the socket, and the next daemon the locks.
    pub(super) fn reach(&self) -> Reach {
        let state = crate::lock(&self.state);
        let there = identity(&self.path);
        let user = state.user.as_ref().is_none_or(Lock::is_in_place);
        let locked = user && state.lock.is_in_place();
        match (state.made, state.given) {
            // One that was not there from the beginning, as in another root directory, is no loss.
            (None, Some(given)) if there != Some(given) => Reach::TakenAway,
            (made, _) if locked && made.is_none_or(|made| there == Some(made)) => Reach::InPlace,
            _ => Reach::Lost,
        }
    }

    /// Takes locks that went, and makes a socket that went; returns that, where it was made.
    ///
    /// # Errors
    /// When another daemon has a lock by now, or the place is not fit for a socket any more.
    pub(super) fn restore(&self) -> Result<Option<UnixListener>, ListenError> {
        let mut state = crate::lock(&self.state);
        if state.made.is_some() {
            prepare_directory(self.path.parent().unwrap_or(Path::new("/")))?;
        }
        if !state.lock.is_in_place() {
            let path = state.lock.path().to_owned();
            state.lock = Lock::acquire(&path, &self.path)?;
        }
        if let Some(user) = state.user.as_ref().filter(|lock| !lock.is_in_place()) {
            let path = user.path().to_owned();
            state.user = UserLock::acquire(&path, &self.path)?.map(UserLock::into_lock);
        }
        if state.made.is_none() || identity(&self.path) == state.made {
            return Ok(None);
        }
        remove_stale(&self.path)?;
        let (listener, made) = bind(&self.path)?;
        state.made = Some(made);
        Ok(Some(listener))
    }

    /// Says in the lock files that the daemon takes no more requests and ends within `limit`.
    pub(crate) fn say_draining(&self, limit: Duration) {
        let record = Record {
            drains_until: SystemTime::now().checked_add(limit),
            ..Record::of_this_process(&self.path)
        };
        let state = crate::lock(&self.state);
        for lock in [Some(&state.lock), state.user.as_ref()]
            .into_iter()
            .flatten()
        {
            lock.write(&record);
        }
    }
}

impl Drop for SocketHold {
    /// Removes the socket if it is still the one we made; somebody may have replaced it.
    fn drop(&mut self) {
        let Some(made) = crate::lock(&self.state).made else {
            return;
        };
        if identity(&self.path) == Some(made)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(socket = %self.path.display(), %error, "cannot remove the socket");
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Makes the socket for us alone; returns its device and inode too.
fn bind(path: &Path) -> Result<(UnixListener, (u64, u64)), ListenError> {
    check_length(path)?;
    let failed = |action| move |source| ListenError::io(action, path, source);
    let listener = UnixListener::bind(path).map_err(failed("bind"))?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(failed("set the permissions of"))?;
    let meta = fs::symlink_metadata(path).map_err(failed("look at"))?;
    listener
        .set_nonblocking(true)
        .map_err(failed("configure"))?;
    Ok((listener, (meta.dev(), meta.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_was_given_is_neither_made_again_nor_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let manager = UnixListener::bind(&path).unwrap();
        let lock = Lock::acquire(&directory.path().join("l"), &path).unwrap();
        let hold = SocketHold::given(path.clone(), lock);
        assert_eq!(hold.reach(), Reach::InPlace);
        // Its lock is ours all the same.
        fs::remove_file(directory.path().join("l")).unwrap();
        assert_eq!(hold.reach(), Reach::Lost);
        assert!(hold.restore().unwrap().is_none());
        assert_eq!(hold.reach(), Reach::InPlace);
        fs::remove_file(&path).unwrap();
        assert_eq!(hold.reach(), Reach::TakenAway);
        assert!(hold.restore().unwrap().is_none() && !path.exists());
        drop(manager);
        let _next = UnixListener::bind(&path).unwrap();
        drop(hold);
        assert!(path.exists());
    }

    #[test]
    fn what_was_made_is_made_again_with_its_locks() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        fs::create_dir(&run).unwrap();
        let (path, lock_path) = (run.join("s"), run.join("l"));
        let user_path = directory.path().join("user/lock");
        let lock = Lock::acquire(&lock_path, &path).unwrap();
        let (_listener, hold) = SocketHold::make(&path, lock).unwrap();
        hold.set_user_lock(UserLock::acquire(&user_path, &path).unwrap());
        assert_eq!(hold.reach(), Reach::InPlace);
        assert!(hold.restore().unwrap().is_none(), "nothing is missing");

        fs::remove_file(&user_path).unwrap();
        assert_eq!(hold.reach(), Reach::Lost);
        assert!(hold.restore().unwrap().is_none() && user_path.exists());

        fs::remove_dir_all(&run).unwrap();
        assert_eq!(hold.reach(), Reach::Lost);
        let _listener = hold.restore().unwrap().expect("the socket was missing");
        assert_eq!(hold.reach(), Reach::InPlace);

        // Another daemon was faster.
        fs::remove_dir_all(&run).unwrap();
        fs::create_dir(&run).unwrap();
        let _other = Lock::acquire(&lock_path, &path).unwrap();
        let error = hold.restore().unwrap_err();
        assert!(
            matches!(error, ListenError::AlreadyRunning { .. }),
            "{error}"
        );
    }

    #[test]
    fn one_user_has_one_daemon_and_a_home_that_takes_no_file_is_no_hindrance() {
        let directory = tempfile::tempdir().unwrap();
        let lock = directory.path().join("user/lock");
        let _first = UserLock::acquire(&lock, Path::new("/run/a")).unwrap();
        let error = UserLock::acquire(&lock, Path::new("/run/b")).unwrap_err();
        assert!(error.to_string().contains("/run/a"), "where it is: {error}");
        let blocked = lock.join("below/a/file");
        assert!(
            UserLock::acquire(&blocked, Path::new("/s"))
                .unwrap()
                .is_none()
        );
    }
}
