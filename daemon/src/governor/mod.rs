//! What to do about memory: a pure function of how short the system is, what this process takes, and what was done so far.
//!
//! | stage | what holds | entered when |
//! |---|---|---|
//! | free | nothing | |
//! | held | no more requests run at once than did; texts kept for lookup were dropped | warning, or near the budget |
//! | shed | drafts are given up, streams go on plainly | critical, or over the budget |
//! | refusing | new requests are refused | still critical after a while |
//! | unloaded | idle pairs are unloaded | still critical after another |
//!
//! Up it goes at once, down only after the system was seen calm for as long as the governor's patience lasts, which doubles
//! whenever that turns out to have been too early. Time in which nobody looked, such as sleep, counts for one look. What
//! is charged to this process alone never refuses work or unloads: others would gain nothing from that.
//!
//! Must not know how any of this is done: `run` does it.

mod run;

use std::time::Duration;

use crate::platform::Pressure;

pub(crate) use run::{MemoryView, govern};

/// How far it has come; each stage includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Free,
    Held,
    Shed,
    Refusing,
    Unloaded,
}

/// What the governor sees in one look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// When, since any fixed moment.
    pub(crate) at: Duration,
    pub(crate) pressure: Pressure,
    /// What the system charges to this process, in bytes.
    pub(crate) footprint: u64,
    /// What it may take, in bytes.
    pub(crate) budget: u64,
    /// What the footprint shrank by when the drafts were shed that would come back, in bytes.
    pub(crate) restore: u64,
}

/// How patient to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hysteresis {
    /// How often it looks while there is anything to see.
    pub(crate) look: Duration,
    /// How long what was done may take to show before more is done.
    pub(crate) settle: Duration,
    /// How long it has to be calm before something is taken back, at first.
    pub(crate) quiet: Duration,
    /// The longest that this grows to.
    pub(crate) longest: Duration,
}

/// What was done so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Governor {
    stage: Stage,
    /// Time seen in this stage.
    in_stage: Duration,
    /// Time seen calm without a break.
    calm: Duration,
    /// How long that has to last.
    patience: Duration,
    /// Time since drafts came back.
    since_restore: Option<Duration>,
    /// The last look.
    seen: Duration,
}

impl Hysteresis {
    /// Derives everything from how long it has to be calm at first.
    pub(crate) fn new(quiet: Duration) -> Self {
        Self {
            look: (quiet / 4).clamp(Duration::from_millis(5), Duration::from_secs(1)),
            settle: (quiet / 4).clamp(Duration::from_secs(1), Duration::from_secs(2)),
            quiet,
            longest: quiet * 64,
        }
    }
}

/// How full a budget may get before something is done, and how empty it has to be to count as calm, in percent.
const NEARLY_FULL: u64 = 90;

impl Situation {
    fn nearly_full(&self, more: u64) -> bool {
        self.footprint.saturating_add(more) > self.budget / 100 * NEARLY_FULL
    }

    /// Whether the footprint keeps anything from being as it should: drafts that were shed counted as there.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.nearly_full(self.restore)
    }

    /// The stage that has to be reached at least.
    fn demand(&self) -> Stage {
        if self.pressure == Pressure::Critical || self.footprint > self.budget {
            Stage::Shed
        } else if self.pressure == Pressure::Warn || self.nearly_full(0) {
            Stage::Held
        } else {
            Stage::Free
        }
    }
}

impl Governor {
    pub(crate) fn new(hysteresis: &Hysteresis) -> Self {
        Self {
            stage: Stage::Free,
            in_stage: Duration::ZERO,
            calm: Duration::ZERO,
            patience: hysteresis.quiet,
            since_restore: None,
            seen: Duration::ZERO,
        }
    }

    /// Returns how far it has come.
    pub(crate) fn stage(&self) -> Stage {
        self.stage
    }

    /// Looks once; returns what to remember, and the stage to enter where that is another one.
    pub(crate) fn look(self, seen: &Situation, hysteresis: &Hysteresis) -> (Self, Option<Stage>) {
        let elapsed = seen.at.saturating_sub(self.seen);
        // Nobody knows what was while nobody looked.
        let observed = elapsed.min(hysteresis.look * 2);
        let demand = seen.demand();
        let mut next = Self {
            seen: seen.at,
            in_stage: self.in_stage + observed,
            calm: match demand {
                Stage::Free => self.calm + observed,
                _ => Duration::ZERO,
            },
            since_restore: self.since_restore.map(|since| since + elapsed),
            ..self
        };
        let stage = next.choose(demand, seen, hysteresis);
        if stage == self.stage {
            return (next, None);
        }
        if stage >= Stage::Shed && self.stage < Stage::Shed {
            next.lose_patience(hysteresis);
        }
        if stage < Stage::Shed && self.stage >= Stage::Shed {
            next.since_restore = Some(Duration::ZERO);
        }
        next.stage = stage;
        next.in_stage = Duration::ZERO;
        next.calm = Duration::ZERO;
        (next, Some(stage))
    }

    fn choose(&self, demand: Stage, seen: &Situation, hysteresis: &Hysteresis) -> Stage {
        if demand > self.stage {
            return demand;
        }
        let insists = seen.pressure == Pressure::Critical && self.in_stage >= hysteresis.settle;
        match self.stage {
            Stage::Shed if insists => Stage::Refusing,
            Stage::Refusing if insists => Stage::Unloaded,
            Stage::Free => Stage::Free,
            stage if self.calm < self.patience => stage,
            Stage::Refusing | Stage::Unloaded => Stage::Shed,
            // Coming back must not be what makes it short again.
            Stage::Shed if seen.nearly_full(seen.restore) => Stage::Shed,
            Stage::Shed | Stage::Held => Stage::Free,
        }
    }

    /// Drafts had to go. Where they had only just come back, that was too early, and it will be later the next time.
    fn lose_patience(&mut self, hysteresis: &Hysteresis) {
        let too_early = self
            .since_restore
            .is_some_and(|since| since < self.patience * 16);
        self.patience = if too_early {
            (self.patience * 2).min(hysteresis.longest)
        } else {
            hysteresis.quiet
        };
    }
}

#[cfg(test)]
mod tests;
