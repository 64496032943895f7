//! Notices that the config file changed, whichever way an editor saves it: written in place, renamed over, deleted and
//! created, or a symbolic link that points elsewhere.
//!
//! What is watched are the directories that the file's name goes through, because a file that is renamed over takes its
//! watch along. What happens in them only says when to look: the text decides whether something changed, so that missed
//! and doubled events, and those of other files, do no harm.
//!
//! It sleeps while nothing happens, which is why the waiting is written out here: the debouncers that go with `notify`
//! either wake up all the time or drop the notice that events were lost.

mod places;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config::{self, Config};
use crate::residency::{Cause, Residency};

/// How long nothing may happen before the file counts as written.
const QUIET: Duration = Duration::from_millis(200);
/// How often something may happen before that, all the same: somebody might write to the directory all the time.
const MOST_WAITS: usize = 20;

/// Reloads the configuration whenever the text of `path` changes, until the daemon ends.
pub(crate) async fn follow(residency: Arc<Residency>, path: PathBuf) {
    let (sender, mut happened) = mpsc::channel(1);
    let told = move |event: notify::Result<Event>| {
        if event.as_ref().is_ok_and(is_reading) {
            return;
        }
        if let Err(error) = &event {
            tracing::warn!(%error, "watching the config file failed in part; looking at it now");
        }
        // One that waits already will see this as well.
        let _waiting = sender.try_send(());
    };
    let mut watcher = match notify::recommended_watcher(told) {
        Ok(watcher) => Watched {
            watcher,
            directories: Vec::new(),
        },
        Err(error) => {
            tracing::warn!(
                %error,
                "the config file cannot be watched; `tandem reload` or SIGHUP reads it again"
            );
            return;
        }
    };
    watcher.update(&path);
    let mut known = read(&path).await;
    // It may have changed between when it was read and when it was first watched.
    if is_other(&residency, &path).await {
        drop(residency.reload(Cause::File).await);
    }
    while happened.recv().await.is_some() {
        for _ in 0..MOST_WAITS {
            match timeout(QUIET, happened.recv()).await {
                Ok(Some(())) => {}
                Ok(None) => return,
                Err(_) => break,
            }
        }
        // First, so that whatever happens after the look is seen.
        watcher.update(&path);
        let text = read(&path).await;
        if text != known {
            known = text;
            // It says itself how it went.
            drop(residency.reload(Cause::File).await);
        }
    }
}

/// Whether somebody only looked, as this module does after every event.
fn is_reading(event: &Event) -> bool {
    match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => !event.need_rescan(),
        _ => false,
    }
}

/// Returns the text, or how it cannot be read.
async fn read(path: &Path) -> Result<String, std::io::ErrorKind> {
    let path = path.to_owned();
    let text = tokio::task::spawn_blocking(move || config::read(&path)).await;
    text.unwrap_or_else(|error| Err(error.into()))
        .map_err(|error| error.kind())
}

/// Whether the file says something else than what is in effect.
async fn is_other(residency: &Residency, path: &Path) -> bool {
    let path = path.to_owned();
    let load = tokio::task::spawn_blocking(move || Config::load(&path, false));
    match load.await {
        Ok(Ok(config)) => config != *residency.config(),
        Ok(Err(_)) => true,
        Err(_) => false,
    }
}

/// A watcher and what it watches.
struct Watched {
    watcher: RecommendedWatcher,
    directories: Vec<PathBuf>,
}

impl Watched {
    /// Watches the directories that lead to `path` now. Anew each time: one that was deleted and made again has lost its
    /// watch, and looks the same.
    fn update(&mut self, path: &Path) {
        for directory in self.directories.drain(..) {
            // What is gone needs no unwatching, and the system says so.
            let _gone = self.watcher.unwatch(&directory);
        }
        for directory in places::directories(path) {
            match self.watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => self.directories.push(directory),
                Err(error) => tracing::warn!(
                    directory = %directory.display(),
                    %error,
                    "changes of the config file may go unnoticed; `tandem reload` or SIGHUP reads it again"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{CreateKind, Flag, ModifyKind};

    use super::*;

    #[test]
    fn only_what_reads_is_ignored() {
        let open = EventKind::Access(AccessKind::Open(AccessMode::Read));
        assert!(is_reading(&Event::new(open)));
        let lost = Event::new(open).set_flag(Flag::Rescan);
        assert!(
            !is_reading(&lost),
            "events were lost: anything may have happened"
        );
        for kind in [
            EventKind::Access(AccessKind::Close(AccessMode::Write)),
            EventKind::Modify(ModifyKind::Any),
            EventKind::Create(CreateKind::File),
            EventKind::Other,
            EventKind::Any,
        ] {
            assert!(!is_reading(&Event::new(kind)), "{kind:?}");
        }
    }
}
