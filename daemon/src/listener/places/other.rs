//! By `notify`, in the file's directory and the one around it.
//!
//! On macOS that is FSEvents, which looks at all that lies below: a directory further up is that of many programs, and each of
//! their writes would wake this one.

use std::io;
use std::path::Path;

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// The directory itself, and the one it lies in.
const DIRECTORIES: usize = 2;

/// Watches the names of some files until it is dropped.
#[derive(Debug)]
pub(crate) struct Places {
    happened: mpsc::Receiver<()>,
    _watcher: RecommendedWatcher,
}

impl Places {
    /// Watches the names of these files from now on.
    pub(crate) fn watch(files: &[&Path]) -> io::Result<Self> {
        let (sender, happened) = mpsc::channel(1);
        let told = move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| event.kind.is_access()) {
                // One that waits already will see this as well.
                let _waiting = sender.try_send(());
            }
        };
        let mut watcher = notify::recommended_watcher(told).map_err(io::Error::other)?;
        for file in files {
            let directories = file.ancestors().skip(1).take(DIRECTORIES);
            for directory in directories.filter(|path| path.parent().is_some()) {
                watcher
                    .watch(directory, RecursiveMode::NonRecursive)
                    .map_err(io::Error::other)?;
            }
        }
        Ok(Self {
            happened,
            _watcher: watcher,
        })
    }

    /// Waits until something has happened.
    pub(crate) async fn changed(&mut self) {
        let _ended = self.happened.recv().await;
    }
}
