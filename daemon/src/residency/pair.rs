//! One configured pair as the service sees it: whether it can serve, how much it may still take on, and since when nobody
//! asked for it. The engine thread and the residency write here; nobody here calls them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tandem_model::load::LoadProgress;
use tokio::sync::watch;

use super::activity::Activity;
use super::recipe::Recipe;
use super::resident::{LaneId, Lease, Readings, Resident};
use super::room::{Reservation, Room};
use super::state::{Failure, PairState};
use crate::config::{KeepAlive, ResidencyConfig};
use crate::lock;

/// What the configuration says of a pair.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) residency: ResidencyConfig,
}

/// One configured pair.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) name: String,
    state: watch::Sender<PairState>,
    settings: Mutex<Settings>,
    room: Arc<Room>,
    idle: Mutex<Idle>,
    /// Earlier loads that requests still end on.
    retiring: AtomicUsize,
    /// How far the load in progress is, or how far the last one came.
    load_progress: Mutex<Option<LoadProgress>>,
}

/// Since when nobody asks, and how long that may last.
#[derive(Clone, Copy, Debug)]
struct Idle {
    since: Instant,
    /// What the last request said.
    keep_alive: Option<KeepAlive>,
}

impl Pair {
    pub(crate) fn new(name: String, settings: Settings, capacity: usize) -> Self {
        Self {
            name,
            state: watch::Sender::new(PairState::Cold(None)),
            settings: Mutex::new(settings),
            room: Arc::new(Room::new(capacity)),
            idle: Mutex::new(Idle {
                since: Instant::now(),
                keep_alive: None,
            }),
            retiring: AtomicUsize::new(0),
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

    pub(crate) fn settings(&self) -> Settings {
        lock(&self.settings).clone()
    }

    pub(super) fn set_settings(&self, settings: Settings) {
        *lock(&self.settings) = settings;
    }

    /// Gives the right to use what is loaded; `None`: nothing is that takes requests.
    pub(super) fn lease(
        self: &Arc<Self>,
        keep_alive: Option<KeepAlive>,
        activity: &Activity,
    ) -> Option<Lease> {
        // The state cannot change meanwhile, so that who drains it sees this user.
        match &*self.state.borrow() {
            PairState::Warm(resident) => Some(resident.lease(self, keep_alive, activity.begin())),
            _ => None,
        }
    }

    /// Goes to loading from cold, where `may` allows it; returns whether it did, and the caller then has to load it.
    pub(super) fn begin_loading(&self, may: impl FnOnce(Option<&Failure>) -> bool) -> bool {
        self.shift(|state| match state {
            PairState::Cold(failure) if may(failure.as_ref()) => Some(PairState::Loading),
            _ => None,
        })
        .is_some()
    }

    /// Has requests use `resident` from now on, and returns what they used before.
    pub(crate) fn set_warm(&self, resident: Arc<Resident>) -> Option<Arc<Resident>> {
        self.rest(None);
        // Where an engine was lost while its successor was loaded.
        self.begin_loading(|_| true);
        let before = self.shift(|_| Some(PairState::Warm(resident)))?;
        before.resident().cloned()
    }

    /// Records that the pair cannot serve.
    pub(super) fn set_failed(&self, error: &str, retry: bool) {
        let failure = Failure {
            error: error.into(),
            retry,
        };
        self.shift(|_| Some(PairState::Cold(Some(failure))));
    }

    /// Records that the engine of a load is gone. Nothing changes where another load serves by now.
    pub(crate) fn lose(&self, lane: LaneId, error: &str, retry: bool) {
        let failure = Failure {
            error: error.into(),
            retry,
        };
        self.shift(|state| {
            let resident = state.resident()?;
            (resident.lane == lane).then(|| PairState::Cold(Some(failure)))
        });
    }

    /// Takes no more requests on what is loaded, where `may` allows it, and returns that.
    pub(super) fn drain(&self, may: impl FnOnce(&Resident) -> bool) -> Option<Arc<Resident>> {
        let before = self.shift(|state| match state {
            PairState::Warm(resident) if may(resident) => {
                Some(PairState::Draining(Arc::clone(resident)))
            }
            _ => None,
        })?;
        before.resident().cloned()
    }

    /// Goes on to one of the states that hold nothing; returns what was loaded.
    pub(super) fn enter(&self, next: PairState) -> Option<Arc<Resident>> {
        let before = self.shift(|_| Some(next))?;
        before.resident().cloned()
    }

    /// Changes the state to what `next` says, and returns the one before; `None`: it stays as it is.
    fn shift(&self, next: impl FnOnce(&PairState) -> Option<PairState>) -> Option<PairState> {
        let mut before = None;
        self.state.send_if_modified(|state| {
            let Some(next) = next(state).filter(|next| state.may_become(next)) else {
                return false;
            };
            if matches!(next, PairState::Loading) {
                *lock(&self.load_progress) = None;
            }
            before = Some(std::mem::replace(state, next));
            true
        });
        before
    }

    /// Takes room for one request; `None`: as many run and wait as may.
    pub(crate) fn reserve(&self) -> Option<Reservation> {
        self.room.reserve()
    }

    /// Returns how many requests may run and wait at once.
    pub(crate) fn capacity(&self) -> usize {
        self.room.capacity()
    }

    pub(super) fn set_capacity(&self, capacity: usize) {
        self.room.set_capacity(capacity);
    }

    /// Returns how many requests hold room: those in the engine and those that wait for the pair to load.
    pub(crate) fn reserved(&self) -> usize {
        self.room.reserved()
    }

    /// Returns what the engine thread last saw of what is loaded.
    pub(crate) fn readings(&self) -> Readings {
        let state = self.state.borrow();
        state
            .resident()
            .map_or_else(Readings::default, |resident| resident.readings())
    }

    /// Notes that a request ended now, and what it said of how long to stay loaded.
    pub(super) fn touch(&self, keep_alive: Option<KeepAlive>) {
        self.rest(keep_alive);
    }

    fn rest(&self, keep_alive: Option<KeepAlive>) {
        *lock(&self.idle) = Idle {
            since: Instant::now(),
            keep_alive,
        };
    }

    /// Returns how long the pair stays loaded without a request.
    pub(crate) fn keep_alive(&self) -> KeepAlive {
        let said = lock(&self.idle).keep_alive;
        said.unwrap_or_else(|| lock(&self.settings).residency.keep_alive)
    }

    /// Returns when the pair is to be unloaded, should nobody ask for it; `None`: not as things stand.
    pub(super) fn unload_due(&self) -> Option<Instant> {
        let KeepAlive::For(limit) = self.keep_alive() else {
            return None;
        };
        match &*self.state.borrow() {
            PairState::Warm(resident) if resident.users() == 0 => {
                lock(&self.idle).since.checked_add(limit)
            }
            _ => None,
        }
    }

    /// Counts earlier loads that requests still end on.
    pub(crate) fn retiring(&self) -> usize {
        self.retiring.load(Ordering::Relaxed)
    }

    pub(super) fn count_retiring(&self, change: isize) {
        self.retiring
            .fetch_add(change.cast_unsigned(), Ordering::Relaxed);
    }

    /// Returns how far a load is that has begun; means nothing while none is in progress.
    pub(crate) fn load_progress(&self) -> Option<LoadProgress> {
        *lock(&self.load_progress)
    }

    pub(crate) fn set_load_progress(&self, progress: Option<LoadProgress>) {
        *lock(&self.load_progress) = progress;
    }
}
