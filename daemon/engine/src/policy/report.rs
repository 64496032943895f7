//! One step as numbers, for whoever wants to know where time went.

use super::{StepPlan, StepTimes};

/// What one step that chose tokens planned, did and took, over all its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepReport {
    /// Rows of the target's forward.
    pub rows: usize,
    /// Of these, drafted ones.
    pub drafted: usize,
    /// Depths at which a drafter ran a forward.
    pub rounds: usize,
    /// Requests that chose tokens.
    pub requests: usize,
    /// Tokens committed.
    pub committed: usize,
    /// Tokens that the plan expected.
    pub expected_tokens: f64,
    /// Cached positions of all sequences together.
    pub positions: usize,
    /// Seconds spent drafting, catching up included.
    pub draft: f64,
    /// Seconds of the target's forward.
    pub verify: f64,
    /// Seconds spent deciding which tokens stand.
    pub accept: f64,
    /// Seconds spent bringing caches in line with what stands.
    pub cache_update: f64,
    /// Seconds that the plan expected of drafting and of what drafts add to the step.
    pub expected_extra: f64,
    /// Seconds that a plain step of the same requests takes, as known after the step.
    pub plain: f64,
    /// Whether the target's device prepared something that later steps find done.
    pub cold: bool,
    /// Whether a drafter's did.
    pub cold_draft: bool,
    /// Whether the step also carried prompt chunks.
    pub prompt: bool,
    /// Whether the draft went on meanwhile.
    pub ahead: bool,
}

impl StepReport {
    /// Seconds of the step without drafting: what the cost of steps is learned from.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.verify + self.accept + self.cache_update
    }
}

impl StepPlan {
    /// What the step did, once it has been recorded.
    pub(crate) fn report(&self, times: &StepTimes<'_>, committed: usize) -> StepReport {
        let kinds = times.drafts.iter().map(|draft| draft.kind);
        StepReport {
            rows: times.rows,
            drafted: self.drafted,
            rounds: kinds.map(|kind| self.rounds.total(kind).0).sum(),
            requests: self.running,
            committed,
            expected_tokens: self.expected_tokens(),
            positions: self.positions,
            draft: times.draft(),
            verify: times.verify,
            accept: times.accept,
            cache_update: times.cache_update,
            expected_extra: self.extra,
            plain: self.plain,
            cold: times.cold,
            cold_draft: times.drafts.iter().any(|draft| draft.cold),
            prompt: self.prompt,
            ahead: self.goes_ahead(),
        }
    }
}
