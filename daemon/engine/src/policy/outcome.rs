//! What became of a step, as the controller hears of it.

use super::DraftKind;

/// What was known of a node when it was offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// Nothing but its depth.
    None,
    /// The confidence that was given to `offer`.
    Confidence(f64),
    /// The tokens of the match that it continues, drafted ones above it counted.
    Match(usize),
}

/// One node below an accepted one, or below the committed tokens: the token that was committed there is known, so it is
/// known whether this node had it. Of several equal siblings each counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeOutcome {
    /// Who proposed it.
    pub kind: DraftKind,
    /// Drafted nodes above it.
    pub depth: usize,
    /// Its place among the children of its parent that the same drafter proposed.
    pub sibling: usize,
    /// What was known of it.
    pub evidence: Evidence,
    /// Whether its token is the one that was committed.
    pub accepted: bool,
}

/// What a step did for one request.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// Tokens committed.
    pub committed: usize,
    /// Length of the accepted path.
    pub accepted: usize,
    /// What can be learned from it.
    pub nodes: &'a [NodeOutcome],
}

/// Tokens beyond the newest that a drafter had to take in before it could draft.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CatchUp {
    /// Requests that had any.
    pub requests: usize,
    /// Tokens of all of them.
    pub tokens: usize,
    /// Seconds that took; 0 where it cannot be told from the first round.
    pub seconds: f64,
}

/// Time that one drafter took in a step.
#[derive(Clone, Copy, Debug)]
pub struct DraftTime {
    /// Which drafter.
    pub kind: DraftKind,
    /// Seconds of its rounds.
    pub round_seconds: f64,
    /// What it had to take in first.
    pub catch_up: CatchUp,
    /// Whether its device prepared something on the way that later rounds find done: the seconds are those of this one
    /// time.
    pub cold: bool,
}

/// Measured seconds of a step.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepTimes<'a> {
    /// Rows of the target's forward.
    pub rows: usize,
    /// Time of each drafter that was called.
    pub drafts: &'a [DraftTime],
    /// Seconds of the target's forward.
    pub verify: f64,
    /// Seconds spent deciding which tokens stand.
    pub accept: f64,
    /// Seconds spent bringing caches in line with what stands.
    pub cache_update: f64,
    /// Whether the target's device prepared something on the way that later steps find done: the seconds are those of this
    /// one time.
    pub cold: bool,
}

impl StepTimes<'_> {
    pub(super) fn draft(&self) -> f64 {
        let seconds = |draft: &DraftTime| draft.round_seconds + draft.catch_up.seconds;
        self.drafts.iter().map(seconds).sum()
    }

    /// Seconds without drafting: what a plain step spends as well.
    pub(super) fn step(&self) -> f64 {
        self.verify + self.accept + self.cache_update
    }
}
