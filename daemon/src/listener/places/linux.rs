//! By inotify(7), which can tell of a directory's own end without telling what happens in it: `/tmp` is on the way to many
//! sockets, and always busy.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

/// Watches the names of some files until it is dropped.
#[derive(Debug)]
pub(crate) struct Places {
    /// No pipe, but read like one.
    events: Receiver,
}

impl Places {
    /// Watches the names of these files from now on.
    pub(crate) fn watch(files: &[&Path]) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        for file in files {
            let Some(directory) = file.parent() else {
                continue;
            };
            let names = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::MASK_ADD;
            let own = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::MASK_ADD;
            inotify::add_watch(&inotify, directory, names | own)?;
            // Of a name that is a link, both what it is and where it leads.
            let behind = directory.canonicalize().unwrap_or_default();
            let on_the_way: Vec<PathBuf> = directory
                .ancestors()
                .chain(behind.ancestors())
                .filter(|path| path.parent().is_some())
                .map(Path::to_owned)
                .collect();
            for path in on_the_way {
                // One that is gone by now is noticed by the look that follows; one that may not be read cannot be watched.
                let _unwatched = inotify::add_watch(&inotify, &path, own | WatchFlags::DONT_FOLLOW);
            }
        }
        Ok(Self {
            events: Receiver::from_owned_fd_unchecked(inotify)?,
        })
    }

    /// Waits until something has happened. What cannot be read any more counts as that, once.
    pub(crate) async fn changed(&mut self) {
        // Room for the longest name.
        let mut events = [0; 4096];
        loop {
            if self.events.readable().await.is_err() {
                return;
            }
            match self.events.try_read(&mut events) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // What happened is seen by who looks; that events were lost is an event as well.
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Says whether `act` is noticed by who watches `file`.
    async fn notices(file: &Path, act: impl FnOnce()) -> bool {
        let mut places = Places::watch(&[file]).unwrap();
        act();
        let limit = Duration::from_secs(60);
        tokio::time::timeout(limit, places.changed()).await.is_ok()
    }

    #[tokio::test]
    async fn whatever_takes_a_name_away_is_noticed() {
        let base = tempfile::tempdir().unwrap();
        let (outer, inner) = (base.path().join("a"), base.path().join("a/b"));
        let file = inner.join("s");
        let make = || {
            fs::create_dir_all(&inner).unwrap();
            fs::write(&file, "").unwrap();
        };
        make();
        assert!(notices(&file, || fs::remove_file(&file).unwrap()).await);
        make();
        assert!(notices(&file, || fs::rename(&file, inner.join("t")).unwrap()).await);
        make();
        assert!(notices(&file, || fs::rename(inner.join("t"), &file).unwrap()).await);
        assert!(notices(&file, || fs::remove_dir_all(&inner).unwrap()).await);
        make();
        assert!(notices(&file, || fs::rename(&inner, base.path().join("c")).unwrap()).await);
        make();
        assert!(notices(&file, || fs::rename(&outer, base.path().join("d")).unwrap()).await);
    }

    #[tokio::test]
    async fn what_happens_beside_the_way_is_not() {
        let base = tempfile::tempdir().unwrap();
        let inner = base.path().join("a");
        fs::create_dir(&inner).unwrap();
        let mut places = Places::watch(&[&inner.join("s")]).unwrap();
        fs::write(base.path().join("busy"), "").unwrap();
        fs::remove_file(base.path().join("busy")).unwrap();
        let told = tokio::time::timeout(Duration::from_millis(200), places.changed());
        assert!(
            told.await.is_err(),
            "the directory around it is nobody's business"
        );
    }
}
