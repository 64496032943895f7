//! One request's place in a step's plan.

use super::acceptance::DEPTHS;
use super::calibration::{Bias, MatchRates};
use super::probe::Use;
use super::{DraftKind, MAX_DRAFT_LENGTH, MOST_CHOSEN};

/// What a drafter may do for a request in this step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The request does not use it, or nothing may be drafted in this step.
    #[default]
    Absent,
    /// It does not pay.
    Closed,
    /// One token, to see whether it pays by now.
    Probe,
    /// As long as it pays.
    Open,
}

/// What is known of one drafter for the request, and what it did in this step so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    pub(super) mode: Mode,
    /// Lookup is judged only once there is a match, so whether it may probe is kept beside its mode.
    pub(super) probe_due: bool,
    pub(super) parked: bool,
    /// Acceptance by depth, from history.
    pub(super) rates: [f64; DEPTHS],
    pub(super) bias: Bias,
    pub(super) matches: MatchRates,
    /// Probability that a round leads to an offer.
    pub(super) offered: f64,
    pub(super) catch_up_seconds: f64,
    /// Best expected speed with it over the speed without.
    pub(super) outlook: f64,
    /// Rounds that it was allowed.
    pub(super) rounds: usize,
    /// Of these, those whose distribution said whether a token is worth it, and those where it was.
    pub(super) judged: usize,
    pub(super) judged_well: usize,
    pub(super) nodes: usize,
    /// Whether it asked for anything.
    pub(super) asked: bool,
}

impl View {
    pub(super) fn rate(&self, depth: usize) -> f64 {
        self.rates[depth.min(DEPTHS - 1)]
    }

    /// Acceptance of a token at `depth` given its parent: `calibrated`, from the drafter's confidence where the pair knows what that is
    /// worth, corrected for this request, else from history.
    pub(super) fn estimate(
        &self,
        calibrated: Option<f64>,
        depth: usize,
        sibling: usize,
        confidence: Option<f64>,
    ) -> f64 {
        if let Some(calibrated) = calibrated {
            return self.bias.correct(calibrated);
        }
        let first = self.rate(depth);
        if sibling == 0 {
            return first;
        }
        // An alternative can only win where the first loses.
        confidence.map_or(0.25, |confidence| confidence.min(1.0)) * (1.0 - first)
    }

    /// How the step used the drafter.
    pub(super) fn used(&self, kind: DraftKind) -> Use {
        match self.mode {
            Mode::Absent => Use::Absent,
            Mode::Probe if self.nodes > 0 => Use::Probe,
            Mode::Open if self.nodes > 0 => Use::Chosen,
            // Without a match there was nothing to decline.
            _ if kind == DraftKind::Lookup && !self.asked => Use::Absent,
            _ => Use::Declined,
        }
    }
}

/// One request's place in a step's plan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    pub(super) views: [View; DraftKind::COUNT],
    /// Nodes above which nothing may be drafted: one token of what remains is always the target's own.
    pub(super) max_depth: usize,
    /// Most nodes, where a policy other than goodput sets it.
    pub(super) length: Option<usize>,
    /// Most siblings that a drafter may propose, where that is limited.
    pub(super) width: Option<usize>,
    /// Whether the ledger bounds it.
    pub(super) bounded: bool,
    /// Seconds that its drafts may still cost.
    pub(super) room: f64,
    /// Seconds that its drafts are expected to add to the step.
    pub(super) extra: f64,
    /// Whether drafts were refused for want of room.
    pub(super) forced: bool,
    /// Expected tokens.
    pub(super) tokens: f64,
    /// Probability, by depth, that a looked-up token is accepted there: what other drafters propose at this depth adds to
    /// that only otherwise.
    pub(super) covered: [f64; DEPTHS],
    pub(super) nodes: usize,
    /// Forwards of a drafter that were found done.
    pub(super) foreseen: usize,
}

impl Seat {
    /// Drafts nothing in this step.
    pub(super) fn close(&mut self) {
        self.views
            .iter_mut()
            .for_each(|view| view.mode = Mode::Absent);
    }

    /// Leaves one drafter of those that cost rounds open; others may only probe.
    pub(super) fn single(&mut self, lead: Option<DraftKind>) {
        for kind in DraftKind::COMPUTING {
            let view = &mut self.views[kind.index()];
            if view.mode == Mode::Open && lead != Some(kind) {
                view.mode = Mode::Closed;
            }
            if view.mode == Mode::Closed && view.probe_due {
                view.mode = Mode::Probe;
            }
        }
    }

    /// Follows the forecast: what does not pay is closed, or probes where that is due.
    pub(super) fn settle(&mut self, drafts: bool) {
        for kind in DraftKind::COMPUTING {
            let view = &mut self.views[kind.index()];
            if view.mode == Mode::Open && !drafts {
                view.mode = if view.probe_due {
                    Mode::Probe
                } else {
                    Mode::Closed
                };
            }
        }
    }

    /// Tokens beyond the first that the request may expect of a step in which drafts go down to `depth`: those of a chain so
    /// long where it drafts that far, or else of what it has.
    pub(super) fn foreseen_gain(&self, depth: usize) -> f64 {
        // Whether there is something to look up is not known before there is.
        let views = DraftKind::COMPUTING.map(|kind| &self.views[kind.index()]);
        let drafts = |view: &&View| view.mode == Mode::Open && view.rounds >= depth;
        let chains = views.into_iter().filter(drafts).map(|view| {
            let mut survival = 1.0;
            let survivals = (0..=depth).map(|depth| {
                survival *= view.rate(depth) * view.offered;
                survival
            });
            survivals.sum()
        });
        chains.fold(self.tokens - 1.0, f64::max)
    }

    /// Follows the thresholds: under the lowest, one token where a probe is due.
    pub(super) fn threshold(&mut self, acceptance: f64) {
        for view in &mut self.views {
            view.outlook = acceptance;
        }
        if self.length != Some(0) {
            return;
        }
        let used = |view: &&mut View| view.mode == Mode::Open;
        for view in self.views.iter_mut().filter(used) {
            view.mode = if view.probe_due {
                Mode::Probe
            } else {
                Mode::Closed
            };
            if view.probe_due {
                self.length = Some(1);
            }
        }
    }

    /// Expected tokens that a node of this survival adds, where others may have the same.
    pub(super) fn gain(&self, kind: DraftKind, depth: usize, survival: f64) -> f64 {
        match kind {
            DraftKind::Lookup => survival,
            _ => survival * (1.0 - self.covered.get(depth).copied().unwrap_or(0.0)),
        }
    }

    /// Most nodes of the step.
    pub(super) fn longest(&self) -> usize {
        self.length.unwrap_or(MOST_CHOSEN).min(MAX_DRAFT_LENGTH)
    }

    /// Whether a chain may reach so deep: a forecast knows no deeper, and a fixed length needs none.
    pub(super) fn reaches(&self, depth: usize) -> bool {
        depth < DEPTHS || self.length.is_some()
    }

    /// Nodes that may still be added below `depth`.
    pub(super) fn left(&self, depth: usize) -> usize {
        let nodes = self.longest().saturating_sub(self.nodes);
        nodes.min(self.max_depth.saturating_sub(depth))
    }

    /// Whether a drafter had something to do, and it was not expected to pay. A step that was to be plain in any case declines
    /// nothing: one that measures what that costs, and one of a request that has lost all that it may.
    pub(super) fn declined(&self) -> bool {
        let used = |kind: DraftKind| self.views[kind.index()].used(kind);
        !self.forced
            && DraftKind::ALL
                .into_iter()
                .any(|kind| used(kind) == Use::Declined)
    }

    /// Whether all it drafted was a probe.
    pub(super) fn probes(&self) -> bool {
        let drafted = |view: &&View| view.nodes > 0;
        self.nodes > 0
            && self
                .views
                .iter()
                .filter(drafted)
                .all(|view| view.mode == Mode::Probe)
    }

    /// Rounds and nodes: what its part of the added time is measured by.
    pub(super) fn weight(&self) -> f64 {
        let rounds: usize = self.views.iter().map(|view| view.rounds).sum();
        (self.nodes + rounds) as f64
    }
}
