//! Which pairs are in memory: the configured ones, and how each gets there and out again.
//!
//! A **pair** is a name with what the configuration says of it. A **resident** is one load of a pair: an engine on the
//! engine thread with a tokenizer. Requests take a **lease** on the resident that serves when they come and end on it,
//! whatever happens to the pair meanwhile; a resident goes when its last lease does. So a reload never meets a request
//! half-way.
//!
//! | module | owns |
//! |---|---|
//! | `state`, `pair`, `resident`, `room` | one pair's state, one load of it, who uses it, how many may |
//! | `recipe`, `changes` | what a load is made of, and what a new configuration makes different |
//! | `fit` | whether loads fit the budget together |
//! | `load`, `unload`, `draft` | the ways into memory and out of it, of pairs and of their drafts |
//! | `reload` | a new configuration: all of it, or nothing |
//! | `mend` | drafts that failed, and come back |
//! | `keeper`, `activity` | unloading what nobody asks for |
//!
//! Everything that needs memory happens one after the other, under one lock. It must not know gRPC, nor how short of
//! memory the system is: the governor decides that, and calls.

mod activity;
mod changes;
mod draft;
mod fit;
mod keeper;
mod load;
mod mend;
mod pair;
mod recipe;
mod reload;
mod resident;
mod room;
mod state;
mod unload;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use tandem_engine::policy::SpeculationStats;
use tokio::sync::watch;

use crate::config::{Config, KeepAlive};
use crate::events::Events;
use crate::loading::Loader;
use crate::lock;
use crate::platform::Platform;
use crate::worker::Worker;

pub(crate) use activity::Activity;
pub(crate) use changes::Changes;
pub(crate) use fit::{TooLarge, check as fit_together};
pub(crate) use keeper::keep;
pub(crate) use mend::mend;
pub(crate) use pair::{Pair, Settings};
pub(crate) use recipe::Recipe;
pub use reload::ConfigSource;
pub(crate) use reload::{Cause, LastReload, ReloadError};
pub(crate) use resident::{DraftPlace, LaneId, Lease, Parts, Readings, Resident, Size};
pub(crate) use room::Reservation;
pub(crate) use state::{Failure, PairState};

/// Whether pairs may be loaded, and with what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Admission {
    /// As configured.
    #[default]
    Open,
    /// Without drafts.
    Plain,
    /// Not at all.
    Closed,
}

/// All pairs.
#[derive(Debug)]
pub(crate) struct Residency {
    config: watch::Sender<Arc<Config>>,
    source: ConfigSource,
    pairs: RwLock<BTreeMap<String, Arc<Pair>>>,
    /// Everything that is on the engine thread, whether or not it serves.
    living: Mutex<BTreeMap<LaneId, Arc<Resident>>>,
    /// What speculation did on residents that are gone.
    past: Mutex<SpeculationStats>,
    loader: Arc<Loader>,
    pub(crate) worker: Worker,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) events: Events,
    pub(crate) activity: Activity,
    /// For weights and caches of all pairs, in bytes.
    budget: AtomicU64,
    admission: Mutex<Admission>,
    /// Held by whoever brings something into memory or out of it.
    memory: tokio::sync::Mutex<()>,
    /// Held by whoever reads the configuration.
    reloads: tokio::sync::Mutex<()>,
    last_reload: Mutex<Option<LastReload>>,
    lanes: AtomicU64,
    /// Told when pairs were loaded or the configuration changed.
    changed: tokio::sync::Notify,
}

/// What a [`Residency`] is made of.
#[derive(Debug)]
pub(crate) struct Equipment {
    pub(crate) config: Config,
    pub(crate) source: ConfigSource,
    pub(crate) loader: Loader,
    pub(crate) worker: Worker,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) events: Events,
    /// In bytes.
    pub(crate) budget: u64,
}

impl Residency {
    /// Makes the configured pairs, all cold.
    pub(crate) fn new(equipment: Equipment) -> Self {
        let Equipment {
            config,
            source,
            loader,
            worker,
            platform,
            events,
            budget,
        } = equipment;
        worker.set_budget(budget);
        let pairs = config.pairs.keys();
        let pairs = pairs.map(|name| (name.clone(), Arc::new(new_pair(&config, name))));
        Self {
            pairs: RwLock::new(pairs.collect()),
            config: watch::Sender::new(Arc::new(config)),
            source,
            living: Mutex::default(),
            past: Mutex::default(),
            loader: Arc::new(loader),
            worker,
            platform,
            events,
            activity: Activity::default(),
            budget: AtomicU64::new(budget),
            admission: Mutex::default(),
            memory: tokio::sync::Mutex::default(),
            reloads: tokio::sync::Mutex::default(),
            last_reload: Mutex::default(),
            lanes: AtomicU64::new(0),
            changed: tokio::sync::Notify::new(),
        }
    }

    /// Returns the configuration that is in effect.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// Returns a receiver that sees every later configuration.
    pub(crate) fn watch_config(&self) -> watch::Receiver<Arc<Config>> {
        self.config.subscribe()
    }

    /// Returns most memory that all pairs together may use, in bytes.
    pub(crate) fn budget(&self) -> u64 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Returns the configured pairs in the order of their names.
    pub(crate) fn pairs(&self) -> Vec<Arc<Pair>> {
        let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
        pairs.values().cloned().collect()
    }

    /// Returns the pair of this name; the empty name is the default pair's.
    ///
    /// # Errors
    /// With the names that there are.
    pub(crate) fn pair(&self, name: &str) -> Result<Arc<Pair>, (String, Vec<String>)> {
        let pairs = self.pairs.read().unwrap_or_else(PoisonError::into_inner);
        // A reload changes both under the first lock.
        let config = self.config();
        let name = if name.is_empty() {
            &config.default_pair
        } else {
            name
        };
        match pairs.get(name) {
            Some(pair) => Ok(Arc::clone(pair)),
            None => Err((name.to_owned(), pairs.keys().cloned().collect())),
        }
    }

    /// Returns everything that is on the engine thread.
    pub(crate) fn residents(&self) -> Vec<Arc<Resident>> {
        let mut living = lock(&self.living);
        let lost = living.extract_if(.., |_, resident| resident.is_lost());
        for (_, resident) in lost {
            lock(&self.past).merge(&resident.readings().speculation);
        }
        living.values().cloned().collect()
    }

    /// Returns what speculation did since the start, over all pairs.
    pub(crate) fn speculation(&self) -> SpeculationStats {
        let mut all = lock(&self.past).clone();
        for resident in self.residents() {
            all.merge(&resident.readings().speculation);
        }
        all
    }

    /// Says from now on whether pairs may be loaded, and with what.
    pub(crate) fn admit(&self, admission: Admission) {
        *lock(&self.admission) = admission;
    }

    pub(crate) fn admission(&self) -> Admission {
        *lock(&self.admission)
    }

    /// Returns how the last reload went.
    pub(crate) fn last_reload(&self) -> Option<LastReload> {
        lock(&self.last_reload).clone()
    }

    /// Waits until a pair can serve, has it loaded where it is not, and takes a lease. `waited` is set to when the wait
    /// for a load began, where there was one.
    ///
    /// # Errors
    /// Where it cannot be loaded, or is no longer configured.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        pair: &Arc<Pair>,
        keep_alive: Option<KeepAlive>,
        waited: &mut Option<Instant>,
    ) -> Result<Lease, NoLease> {
        let mut state = pair.watch();
        loop {
            state.borrow_and_update();
            if let Some(lease) = pair.lease(keep_alive, &self.activity) {
                return Ok(lease);
            }
            match pair.state() {
                PairState::Cold(None) => self.want(pair),
                PairState::Cold(Some(failure)) => return Err(NoLease::Failed(failure)),
                PairState::Removed => return Err(NoLease::Removed),
                PairState::Loading
                | PairState::Warm(_)
                | PairState::Draining(_)
                | PairState::Unloading => {}
            }
            waited.get_or_insert_with(Instant::now);
            if state.changed().await.is_err() {
                return Err(NoLease::Removed);
            }
        }
    }
}

/// Why a request gets no lease.
#[derive(Debug)]
pub(crate) enum NoLease {
    Failed(Failure),
    Removed,
}

fn new_pair(config: &Config, name: &str) -> Pair {
    let settings = settings(config, name);
    Pair::new(name.to_owned(), settings, capacity(config))
}

/// What the configuration says of the pair of this name, which it has.
fn settings(config: &Config, name: &str) -> Settings {
    let pair = &config.pairs[name];
    Settings {
        recipe: Arc::new(Recipe::new(config, pair)),
        residency: pair.residency,
    }
}

/// Requests of one pair that may run and wait at once.
fn capacity(config: &Config) -> usize {
    config.server.max_concurrent + config.server.max_queue
}

#[cfg(test)]
mod tests;
