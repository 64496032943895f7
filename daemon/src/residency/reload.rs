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
use std::time::{Duration, Instant};

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;

use super::{
    Changes, DraftPlace, Pair, PairState, Residency, Resident, Size, TooLarge, capacity, new_pair,
    settings,
};
use crate::config::{Config, ConfigError, format_bytes};
use crate::loading::{LoadFailure, SPARE};
use crate::{events, lock, platform};
use staging::Staging;

/// How long a reload waits for drafts to come back: they may have to wait for requests to end.
const MEND_WAIT: Duration = Duration::from_secs(10);

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
            // The file was put back to what is served: then nothing is wrong with it any more.
            Ok(changes)
                if cause == Cause::File
                    && *changes == Changes::default()
                    && !self.last_reload_failed() =>
            {
                return;
            }
            Ok(changes) => {
                tracing::info!(
                    ?cause,
                    added = ?changes.added,
                    removed = ?changes.removed,
                    changed = ?changes.changed,
                    retried = ?changes.retried,
                    failed = ?changes.failed,
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

    fn last_reload_failed(&self) -> bool {
        let last = lock(&self.last_reload);
        last.as_ref().is_some_and(|last| last.error.is_some())
    }

    async fn try_reload(self: &Arc<Self>, cause: Cause) -> Result<Changes, ReloadError> {
        let (new, old) = (self.read_config(cause).await?, self.config());
        let failed = |name: &str| {
            let pair = self.pair(name);
            pair.is_ok_and(|pair| matches!(pair.state(), PairState::Cold(Some(_))))
        };
        let mut changes = Changes::between(&old, &new, failed);
        self.find_replaced(&new, &mut changes).await;
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
                changes.failed.extend(staging.given_up().iter().cloned());
                self.commit(new, &changes, staging);
                self.changed.notify_one();
                self.mend_now(&mut changes).await;
                changes.failed.sort();
                Ok(changes)
            }
            Err(error) => {
                self.set_budget(before);
                Err(error)
            }
        }
    }

    /// Finds the pairs that are configured as before, and whose files are others than those that were loaded; and those whose
    /// drafts could not be used, to try them again.
    async fn find_replaced(&self, new: &Config, changes: &mut Changes) {
        for pair in self.pairs() {
            let state = pair.state();
            let Some(resident) = state.resident() else {
                continue;
            };
            if !new.pairs.contains_key(&pair.name) || changes.has(&pair.name) {
                continue;
            }
            let (loader, loaded) = (Arc::clone(&self.loader), Arc::clone(resident));
            let look = move || loader.replaced(&loaded.recipe, &loaded.report);
            let looked = self.aside(look).await;
            match looked.unwrap_or(Err(LoadFailure::Panic)) {
                Ok(Some(role)) => {
                    tracing::info!(pair = %pair.name, role, "the file is another one than was loaded");
                    changes.changed.push(pair.name.clone());
                }
                Ok(None) if resident.draft() == DraftPlace::Unusable => {
                    changes.retried.push(pair.name.clone());
                }
                Ok(None) => {}
                // It serves from what it has, which is no worse for that.
                Err(error) => {
                    tracing::warn!(pair = %pair.name, %error, "cannot see whether the pair's files changed");
                }
            }
        }
        changes.changed.sort();
        changes.retried.sort();
    }

    /// Loads drafts again that failed while they worked.
    async fn mend_now(self: &Arc<Self>, changes: &mut Changes) {
        for (pair, resident) in self.lost_drafts() {
            let name = pair.name.clone();
            // Where requests hold an exit adapter up, it comes when they are done.
            let mended = tokio::time::timeout(MEND_WAIT, self.mend(pair, resident)).await;
            match mended {
                Ok(Ok(Err(error))) => {
                    let error = format!("the draft is not used: {error}");
                    changes.failed.push((name, error));
                }
                Ok(Err(_)) => changes.failed.push((name, LoadFailure::Panic.to_string())),
                Ok(Ok(Ok(()))) | Err(_) => changes.retried.push(name),
            }
        }
    }

    /// Sets most memory that all pairs together may use, in bytes.
    fn set_budget(&self, bytes: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
        self.share_budget();
    }

    /// Says how much engines may take: what the budget allows, and no more than the limits of the process do.
    pub(super) fn share_budget(&self) {
        let (budget, mut most) = (self.budget(), u64::MAX);
        if let Some(room) = platform::room() {
            let held = self.residents().into_iter().map(|resident| {
                let memory = resident.readings().memory;
                resident.size.weights + memory.target_kv + memory.draft_kv
            });
            most = held.sum::<u64>().saturating_add(room.saturating_sub(SPARE));
        }
        if most < budget {
            tracing::warn!(
                left = format_bytes(most),
                budget = format_bytes(budget),
                "the limits of the process leave less for weights and caches than the budget does"
            );
        }
        self.worker.set_budget(budget.min(most));
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
        let (mut sizes, mut failed) = (BTreeMap::new(), Vec::new());
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
                    failed.push((name.clone(), failure));
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
        for (name, failure) in failed {
            if let Ok(pair) = self.pair(&name)
                && matches!(pair.state(), PairState::Cold(Some(_)))
            {
                pair.set_failed(&failure.to_string(), failure.may_pass());
            }
            changes.failed.push((name, failure.to_string()));
        }
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
