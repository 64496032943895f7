//! One configured pair as the service sees it: whether it can serve, how much it may still take on, and its last
//! readings. The engine thread and the loader write here; nobody here calls them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_engine::engine::MemoryUse;
use tandem_engine::pair::{LoadProgress, PairReport};
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_engine::template::ChatTemplate;
use tandem_engine::tokenizer::Tokenizer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tonic::Status;

use crate::config::PairConfig;
use crate::errors;

/// Where a pair is on its way; the service's `Residency`, with what belongs to each state.
#[derive(Clone, Debug)]
pub(crate) enum PairState {
    /// Its files are being read.
    Loading,
    /// It serves.
    Warm(Arc<Warm>),
    /// It could not be loaded, or its engine is lost.
    Failed(Failure),
}

/// Why a pair cannot serve.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// What is wrong and what to do, as a sentence.
    pub(crate) error: Arc<str>,
    /// Whether loading may succeed later without a restart: its files were missing.
    pub(crate) retry: bool,
}

/// What the service needs of a loaded pair besides its engine.
#[derive(Debug)]
pub(crate) struct Warm {
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) template: Option<Arc<ChatTemplate>>,
    pub(crate) report: PairReport,
}

/// What the engine thread last saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) memory: MemoryUse,
    /// Why the pair decodes plainly, where it does.
    pub(crate) speculation_off: Option<String>,
    /// What speculation did since the pair was loaded.
    pub(crate) speculation: SpeculationStats,
    /// What decoding steps cost.
    pub(crate) step_costs: Arc<[StepCost]>,
}

/// One configured pair.
#[derive(Debug)]
pub(crate) struct Pair {
    /// Its place among the configured pairs.
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) config: PairConfig,
    state: watch::Sender<PairState>,
    room: Arc<Semaphore>,
    /// Requests that may run and wait at once.
    pub(crate) capacity: usize,
    readings: Mutex<Readings>,
    /// How far the load in progress is, or how far the last one came.
    load_progress: Mutex<Option<LoadProgress>>,
}

/// Room for one request; held until the engine is done with it.
#[derive(Debug)]
pub(crate) struct Reservation {
    _permit: OwnedSemaphorePermit,
}

impl Pair {
    pub(crate) fn new(index: usize, name: String, config: PairConfig, capacity: usize) -> Self {
        Self {
            index,
            name,
            config,
            state: watch::Sender::new(PairState::Loading),
            room: Arc::new(Semaphore::new(capacity)),
            capacity,
            readings: Mutex::default(),
            load_progress: Mutex::default(),
        }
    }

    /// Returns the state now.
    pub(crate) fn state(&self) -> PairState {
        self.state.borrow().clone()
    }

    /// Returns a receiver that sees every later state.
    pub(crate) fn watch(&self) -> watch::Receiver<PairState> {
        self.state.subscribe()
    }

    pub(crate) fn set_warm(&self, warm: Arc<Warm>) {
        self.state.send_replace(PairState::Warm(warm));
    }

    /// Records that the pair cannot serve.
    pub(crate) fn set_failed(&self, error: &str, retry: bool) {
        let error = error.into();
        self.state
            .send_replace(PairState::Failed(Failure { error, retry }));
    }

    /// Puts a pair whose files were missing back to loading; returns whether it did, and the caller then has to have it
    /// loaded.
    pub(crate) fn retry(&self) -> bool {
        self.state.send_if_modified(|state| {
            let retry = matches!(state, PairState::Failed(Failure { retry: true, .. }));
            if retry {
                *lock(&self.load_progress) = None;
                *state = PairState::Loading;
            }
            retry
        })
    }

    /// Waits while the pair is loading.
    ///
    /// # Errors
    /// FAILED_PRECONDITION with the reason where it could not be loaded.
    pub(crate) async fn ready(&self) -> Result<Arc<Warm>, Status> {
        let mut watch = self.watch();
        let state = watch
            .wait_for(|state| !matches!(state, PairState::Loading))
            .await;
        match state.map(|state| state.clone()) {
            Ok(PairState::Warm(warm)) => Ok(warm),
            Ok(PairState::Failed(failure)) => Err(errors::pair_failed(&self.name, &failure.error)),
            Ok(PairState::Loading) | Err(_) => Err(errors::internal("the pair's state is gone")),
        }
    }

    /// Takes room for one request.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED when as many run and wait as may.
    pub(crate) fn reserve(&self) -> Result<Reservation, Status> {
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(permit) => Ok(Reservation { _permit: permit }),
            Err(_) => Err(errors::queue_full(&self.name, self.capacity)),
        }
    }

    /// Returns how many requests hold room: those in the engine and those that wait for the pair to load.
    pub(crate) fn reserved(&self) -> usize {
        self.capacity - self.room.available_permits()
    }

    pub(crate) fn readings(&self) -> Readings {
        lock(&self.readings).clone()
    }

    pub(crate) fn set_readings(&self, readings: Readings) {
        *lock(&self.readings) = readings;
    }

    /// Returns how far a load is that has begun; means nothing in other states than loading.
    pub(crate) fn load_progress(&self) -> Option<LoadProgress> {
        *lock(&self.load_progress)
    }

    pub(crate) fn set_load_progress(&self, progress: LoadProgress) {
        *lock(&self.load_progress) = Some(progress);
    }
}

/// A value that is only ever replaced whole cannot be half changed.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
