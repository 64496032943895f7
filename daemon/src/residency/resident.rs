//! One load of a pair: what the service needs of it besides its engine, and who still uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tandem_engine::engine::MemoryUse;
use tandem_engine::pair::PairReport;
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_model::template::{ChatTemplate, TemplateError};
use tandem_model::tokenizer::Tokenizer;
use tokio::sync::watch;

use super::activity::Active;
use super::pair::Pair;
use super::recipe::Recipe;
use crate::config::{DraftConfig, KeepAlive};
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
    /// It failed while it worked, and is to be loaded again.
    Lost,
    /// It could not be used when the pair was loaded, or failed and cannot be loaded apart from its target.
    Unusable,
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
    losses: Mutex<Losses>,
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
            losses: Mutex::default(),
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

    /// Records that the draft failed, where it was there; returns whether it was. One without a file of its own comes back
    /// with the pair only.
    pub(crate) fn lose_draft(&self) -> bool {
        let file = self.recipe.draft.file().is_some();
        let mut draft = lock(&self.draft);
        let next = match *draft {
            DraftPlace::Resident if file => DraftPlace::Lost,
            DraftPlace::None if !file && self.recipe.draft != DraftConfig::None => {
                DraftPlace::Unusable
            }
            _ => return false,
        };
        *draft = next;
        lock(&self.losses).count(Instant::now());
        true
    }

    /// Records that the draft came back, or did not.
    pub(super) fn mended(&self, worked: bool) {
        let now = Instant::now();
        let mut losses = lock(&self.losses);
        match worked {
            true => losses.back = Some(now),
            false => losses.count(now),
        }
    }

    /// Returns when the draft is to be loaded again; `None`: it is not lost.
    pub(super) fn draft_due(&self) -> Option<Instant> {
        (self.draft() == DraftPlace::Lost).then(|| lock(&self.losses).due)?
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

/// How often a draft failed, which says how long to wait before it is tried again.
#[derive(Debug, Default)]
struct Losses {
    running: u32,
    due: Option<Instant>,
    back: Option<Instant>,
}

impl Losses {
    /// A draft that worked for so long failed for a reason of its own.
    const WORKED: Duration = Duration::from_secs(600);
    const FIRST_WAIT: Duration = Duration::from_secs(1);
    const MOST_DOUBLINGS: u32 = 10;

    /// Counts a failure: the first is mended at once, each further one after twice the time.
    fn count(&mut self, now: Instant) {
        if self
            .back
            .is_some_and(|back| now.saturating_duration_since(back) >= Self::WORKED)
        {
            self.running = 0;
        }
        let wait = match self.running {
            0 => Duration::ZERO,
            more => Self::FIRST_WAIT * 2u32.pow((more - 1).min(Self::MOST_DOUBLINGS)),
        };
        self.running += 1;
        self.due = Some(now + wait);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_that_fails_again_and_again_is_tried_ever_more_rarely() {
        let begun = Instant::now();
        let mut losses = Losses::default();
        let mut waits = Vec::new();
        for _ in 0..4 {
            losses.count(begun);
            waits.push(losses.due.expect("it is due some time") - begun);
        }
        assert_eq!(waits, [0, 1, 2, 4].map(Duration::from_secs));
        losses.back = Some(begun);
        losses.count(begun + Losses::WORKED);
        assert_eq!(losses.due, Some(begun + Losses::WORKED), "it had worked");
        for _ in 0..100 {
            losses.count(begun);
        }
        assert!(losses.due.expect("some time") - begun <= Duration::from_secs(2000));
    }
}
