//! One load of a pair: what the service needs of it besides its engine, and who still uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tandem_engine::engine::MemoryUse;
use tandem_engine::pair::PairReport;
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_engine::template::{ChatTemplate, TemplateError};
use tandem_engine::tokenizer::Tokenizer;
use tokio::sync::watch;

use super::activity::Active;
use super::pair::Pair;
use super::recipe::Recipe;
use crate::config::KeepAlive;
use crate::lock;

/// Names an engine on the engine thread; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId(pub(crate) u64);

/// What the engine thread last saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) memory: MemoryUse,
    /// Bytes of cache that the running requests come to take.
    pub(crate) cache_claims: u64,
    /// Why the pair decodes plainly, where it does.
    pub(crate) speculation_off: Option<String>,
    /// What speculation did since the pair was loaded.
    pub(crate) speculation: SpeculationStats,
    /// What decoding steps cost.
    pub(crate) step_costs: Arc<[StepCost]>,
}

/// Bytes that a load is counted with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Weights of target and draft, whether or not the draft is there just now.
    pub(crate) weights: u64,
    /// Caches of one context of full length.
    pub(crate) context: u64,
}

/// Where the draft of a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftPlace {
    /// There is none that could be given up and put back.
    None,
    /// With its target.
    Resident,
    /// Given up; by how much the footprint shrank for it, in bytes.
    Shed { freed: u64 },
    /// On its way back.
    Returning { freed: u64 },
}

/// One load of a pair.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) lane: LaneId,
    /// The pair's name.
    pub(crate) name: String,
    pub(crate) recipe: Arc<Recipe>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// Where it has no usable one: why.
    pub(crate) template: Result<Arc<ChatTemplate>, Arc<TemplateError>>,
    pub(crate) report: PairReport,
    pub(crate) size: Size,
    draft: Mutex<DraftPlace>,
    readings: Mutex<Readings>,
    /// Whether it ever brought a request to a regular end.
    proved: AtomicBool,
    /// Whether its engine is gone for a reason of its own.
    lost: AtomicBool,
    users: watch::Sender<()>,
    /// How long loading took.
    pub(crate) took: Duration,
}

/// The right to use a load: as long as one is held, the load stays.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) resident: Arc<Resident>,
    pair: Arc<Pair>,
    /// What the request said of how long to stay loaded after it.
    keep_alive: Option<KeepAlive>,
    // These two go in this order, so that who hears of the end finds nobody left.
    _user: watch::Receiver<()>,
    _active: Active,
}

/// What makes a [`Resident`].
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// Where it has no usable one: why.
    pub(crate) template: Result<Arc<ChatTemplate>, Arc<TemplateError>>,
    pub(crate) report: PairReport,
    pub(crate) size: Size,
    pub(crate) draft: DraftPlace,
    pub(crate) took: Duration,
}

impl Resident {
    pub(crate) fn new(lane: LaneId, name: String, recipe: Arc<Recipe>, parts: Parts) -> Self {
        Self {
            lane,
            name,
            recipe,
            tokenizer: parts.tokenizer,
            template: parts.template,
            report: parts.report,
            size: parts.size,
            draft: Mutex::new(parts.draft),
            readings: Mutex::default(),
            proved: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            users: watch::Sender::new(()),
            took: parts.took,
        }
    }

    /// Gives the right to use it.
    pub(crate) fn lease(
        self: &Arc<Self>,
        pair: &Arc<Pair>,
        keep_alive: Option<KeepAlive>,
        active: Active,
    ) -> Lease {
        Lease {
            resident: Arc::clone(self),
            pair: Arc::clone(pair),
            keep_alive,
            _user: self.users.subscribe(),
            _active: active,
        }
    }

    pub(crate) fn users(&self) -> usize {
        self.users.receiver_count()
    }

    /// Waits until nobody uses it.
    pub(crate) async fn unused(&self) {
        self.users.closed().await;
    }

    pub(crate) fn readings(&self) -> Readings {
        lock(&self.readings).clone()
    }

    pub(crate) fn set_readings(&self, readings: Readings) {
        *lock(&self.readings) = readings;
    }

    pub(crate) fn draft(&self) -> DraftPlace {
        *lock(&self.draft)
    }

    pub(crate) fn set_draft(&self, place: DraftPlace) {
        *lock(&self.draft) = place;
    }

    /// Records that a request came to a regular end.
    pub(crate) fn prove(&self) {
        self.proved.store(true, Ordering::Relaxed);
    }

    /// Records that its engine is gone.
    pub(crate) fn set_lost(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn is_proved(&self) -> bool {
        self.proved.load(Ordering::Relaxed)
    }
}

impl Lease {
    /// Returns the pair that it is a load of.
    pub(crate) fn pair(&self) -> &Arc<Pair> {
        &self.pair
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pair.touch(self.keep_alive);
    }
}
