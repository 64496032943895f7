//! A new configuration: all of it, or nothing.
//!
//! Everything that can be wrong is found before anything changes for requests: the file, the models it names, whether they
//! fit. What is to be loaded is then loaded beside what serves, and takes over in one go. Only where both do not fit, the
//! old loads drain first, and are loaded again should the new ones fail after all.

mod staging;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;

use super::{
    Changes, Pair, PairState, Residency, Resident, Size, TooLarge, capacity, new_pair, settings,
};
use crate::config::{Config, ConfigError};
use crate::loading::LoadFailure;
use crate::{events, lock};
use staging::Staging;

/// Where the configuration is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    /// The file.
    pub path: PathBuf,
    /// Whether the file has to exist. Otherwise the built-in values apply without it.
    pub required: bool,
}

/// Who wants a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The file changed.
    File,
    /// SIGHUP.
    Signal,
    /// A call.
    Call,
}

/// How the last reload went.
#[derive(Clone, Debug)]
pub(crate) struct LastReload {
    pub(crate) at: Instant,
    /// What was wrong, where something was.
    pub(crate) error: Option<String>,
}

/// Why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "{} is empty, which would be the built-in configuration; if that is meant, run `tandem reload`",
        path.display()
    )]
    Empty { path: PathBuf },
    #[error("pair \"{pair}\": {source}")]
    Pair { pair: String, source: LoadFailure },
    #[error("the pairs do not fit together: {0}")]
    TooLarge(#[from] TooLarge),
    #[error("reading the configuration stopped on an internal error; the daemon's log has it")]
    Panic,
}

impl Residency {
    /// Reads the configuration again and makes it so. It runs to its end even where the caller does not wait.
    ///
    /// # Errors
    /// Where anything is wrong with it. Everything is as it was then.
    pub(crate) async fn reload(self: &Arc<Self>, cause: Cause) -> Result<Changes, ReloadError> {
        let this = Arc::clone(self);
        let reload = tokio::spawn(async move {
            let _one_at_a_time = this.reloads.lock().await;
            let result = this.try_reload(cause).await;
            this.tell_reload(cause, &result);
            result
        });
        reload.await.unwrap_or(Err(ReloadError::Panic))
    }

    /// Begins without a valid configuration, as after a reload that failed, and with nothing that could serve meanwhile.
    pub(crate) fn begin_without(&self, problem: ReloadError) {
        let reason = format!("the configuration is not valid: {problem}");
        for pair in self.pairs() {
            pair.set_failed(&reason, false);
        }
        self.tell_reload(Cause::File, &Err(problem));
    }

    fn tell_reload(&self, cause: Cause, result: &Result<Changes, ReloadError>) {
        let event = match result {
            Ok(changes) if cause == Cause::File && *changes == Changes::default() => return,
            Ok(changes) => {
                tracing::info!(
                    ?cause,
                    added = ?changes.added,
                    removed = ?changes.removed,
                    changed = ?changes.changed,
                    retried = ?changes.retried,
                    restart_needed = ?changes.restart_needed,
                    "reloaded the configuration"
                );
                Event::Reloaded(changes.clone().into())
            }
            Err(error) => {
                tracing::error!(?cause, %error, "the configuration stays as it was");
                Event::ReloadFailed(v1::ReloadFailed {
                    error: error.to_string(),
                })
            }
        };
        *lock(&self.last_reload) = Some(LastReload {
            at: Instant::now(),
            error: result.as_ref().err().map(ToString::to_string),
        });
        self.events.tell("", event);
    }

    async fn try_reload(self: &Arc<Self>, cause: Cause) -> Result<Changes, ReloadError> {
        let (new, old) = (self.read_config(cause).await?, self.config());
        let failed = |name: &str| {
            let pair = self.pair(name);
            pair.is_ok_and(|pair| matches!(pair.state(), PairState::Cold(Some(_))))
        };
        let mut changes = Changes::between(&old, &new, failed);
        let memory = self.memory.lock().await;
        let before = self.budget();
        self.set_budget(self.budget_of(&new));
        let staged = match self.sizes_of(&new, &mut changes).await {
            Ok(sizes) => Staging::load(self, memory, before, (&new, &changes), &sizes).await,
            Err(error) => Err(error),
        };
        match staged {
            Ok(staging) => {
                changes.retried.retain(|name| !staging.gave_up(name));
                self.commit(new, &changes, staging);
                self.changed.notify_one();
                Ok(changes)
            }
            Err(error) => {
                self.set_budget(before);
                Err(error)
            }
        }
    }

    /// Sets most memory that all pairs together may use, in bytes.
    fn set_budget(&self, bytes: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
        self.worker.set_budget(bytes);
    }

    async fn read_config(&self, cause: Cause) -> Result<Config, ReloadError> {
        let source = self.source.clone();
        let had_file = self.config().path.is_some();
        let read = move || {
            // Who writes a file in place empties it first; what comes next will be seen as well.
            let length = std::fs::metadata(&source.path).map(|meta| meta.len());
            if cause == Cause::File && had_file && length.is_ok_and(|length| length == 0) {
                return Err(ReloadError::Empty { path: source.path });
            }
            // One that there was must not be missed for a moment in which it is being replaced.
            let required = source.required || had_file;
            Config::load(&source.path, required).map_err(ReloadError::from)
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.unwrap_or(Err(ReloadError::Panic))
    }

    pub(crate) fn budget_of(&self, config: &Config) -> u64 {
        // It was readable when the daemon started.
        let physical = self.platform.physical_memory().unwrap_or(u64::MAX);
        config.budget(physical, self.platform.recommended_working_set())
    }

    /// Checks all that is new by the headers of its files, and returns how much memory each of them takes. What had failed
    /// before and still does keeps nobody else from changing.
    async fn sizes_of(
        &self,
        new: &Config,
        changes: &mut Changes,
    ) -> Result<BTreeMap<String, Size>, ReloadError> {
        let mut sizes = BTreeMap::new();
        let retried = changes.retried.clone();
        for name in changes.to_check() {
            let (loader, recipe) = (Arc::clone(&self.loader), settings(new, name).recipe);
            let budget = self.budget();
            let inspect = move || loader.inspect(&recipe, budget);
            let inspected = self.aside(inspect).await;
            match inspected.unwrap_or(Err(LoadFailure::Panic)) {
                Ok(size) => drop(sizes.insert(name.clone(), size)),
                Err(failure) if retried.contains(name) => {
                    tracing::warn!(pair = %name, error = %failure, "still cannot load the pair");
                }
                Err(source) => {
                    return Err(ReloadError::Pair {
                        pair: name.clone(),
                        source,
                    });
                }
            }
        }
        changes.retried.retain(|name| sizes.contains_key(name));
        Ok(sizes)
    }

    /// Has requests use the new configuration and what was loaded for it.
    fn commit(self: &Arc<Self>, new: Config, changes: &Changes, mut staging: Staging<'_>) {
        let mut retired: Vec<(Arc<Pair>, Arc<Resident>, &'static str)> = Vec::new();
        {
            // No request sees a part of it.
            let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
            for name in &changes.removed {
                if let Some(pair) = pairs.remove(name)
                    && let Some(resident) = pair.enter(PairState::Removed)
                {
                    retired.push((pair, resident, "removed"));
                }
            }
            for name in new.pairs.keys() {
                if let Some(pair) = pairs.get(name) {
                    pair.set_settings(settings(&new, name));
                    pair.set_capacity(capacity(&new));
                } else {
                    let pair = staging.pair(name);
                    let pair = pair.unwrap_or_else(|| Arc::new(new_pair(&new, name)));
                    pairs.insert(name.clone(), pair);
                }
            }
            for (pair, resident) in staging.take_ready() {
                self.events.tell(&pair.name, events::ready(resident.took));
                if let Some(old) = pair.set_warm(resident) {
                    retired.push((pair, old, "replaced"));
                }
            }
            self.config.send_replace(Arc::new(new));
        }
        for (pair, resident, reason) in retired {
            self.retire(&pair, resident, reason);
        }
    }
}
