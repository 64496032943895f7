//! How much to draft: a decision about cost. Drafting more pays while it raises expected tokens per second, as measured on
//! this machine; drafting nothing is a normal answer.
//!
//! The [`Controller`] knows what steps and rounds cost ([`CostModel`]) and how well drafts of the pair did. Each step it
//! makes a [`StepPlan`], which answers drafters token by token: whether another round pays, and whether a token is worth
//! verifying. After the step it learns, and books each request's [`Ledger`], which bounds what speculation may lose. Time in
//! which a device prepared what later steps find done ([`StepTimes::cold`]) is booked like any other, and taken for a cost
//! only where it never ends.
//! This module must not know models, tokens, caches or the clock: seconds come in as numbers.
//!
//! # What a plan may depend on
//! Requests without a seed are verified by rejection sampling, which is exact only if a drafted token that is offered is
//! distributed as the drafter's distribution q says. So whether a token drawn from q is offered may depend on q itself, such
//! as its largest probability, on tokens already offered above or before it, on costs, and on anything that happened in earlier
//! steps. **It must never depend on the token drawn, nor on anything computed from that token before it was offered.**
//! Therefore nothing in this module takes a token or its probability: [`StepPlan::offer`] takes a `confidence`, which callers
//! must read off q before they draw (the largest probability; for the j-th sibling the j-th largest). Guesses without a
//! distribution, such as looked-up tokens, are free of this: q is a point mass and there is no draw to bias.

mod acceptance;
mod calibration;
mod catching_up;
mod controller;
mod cost;
mod curve;
mod guess;
mod learn;
mod ledger;
mod outcome;
mod pipelining;
mod plan;
mod plan_costs;
mod price;
mod probe;
mod rate;
mod report;
mod seat;
mod state;
mod stats;
mod surface;
#[cfg(test)]
mod tests;
mod window;
mod worth;

pub use acceptance::DEPTHS;
pub use controller::{Batch, Candidate, Controller};
pub use cost::{CostModel, StepCost};
pub use ledger::{ALLOWANCE_SHARE, ALLOWANCE_STEPS, CREDIT_STEPS, Ledger};
pub use outcome::{CatchUp, DraftTime, Evidence, NodeOutcome, Outcome, StepTimes};
pub use pipelining::Pipelined;
pub use plan::StepPlan;
pub use report::StepReport;
pub use state::DraftState;
pub use stats::SpeculationStats;

/// Most drafted tokens of one request in one step, where somebody fixes how many: with the token that the target chooses, as
/// many rows as costs are told apart for, and as a step has on a CPU.
pub const MAX_DRAFT_LENGTH: usize = 63;

/// Most drafted tokens of one request in one step that the policy chooses by itself.
const MOST_CHOSEN: usize = 32;

/// How draft lengths are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By expected tokens per second, with probes and a bound on losses.
    #[default]
    Goodput,
    /// By the acceptance of the last ten drafted tokens, chains only: 5 above 0.80, 2 to 3 from 0.55 to 0.70, none under
    /// 0.50 but for probes. The ledger is kept and bounds nothing. For comparison.
    Threshold,
    /// Always chains of so many tokens. The ledger is kept and bounds nothing. For comparison.
    Fixed(usize),
}

/// Whose time the bound on losses protects. With one running request both mean the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    /// Every request waits for the whole step, so every request books it against the plain step of the same batch: step
    /// time less committed tokens × plain step. Drafts must fit the allowance of all, and a step's drafts may cost no more than
    /// the request that gains least by them is expected to gain, so that allowances are not spent on neighbours; where one
    /// drafts, all do. This keeps the promise to each request by the clock on the wall, whatever its neighbours draft; a
    /// request that gains nothing holds back neighbours that would.
    #[default]
    EachRequest,
    /// The step's time is split: each request pays its part of the plain step of the same batch, and what its own drafts
    /// added to it, against its part of the tokens. Losses of the machine are bounded by the sum of all allowances and
    /// throughput is free to rise, but one request may wait for another's drafts.
    Batch,
}

/// What proposes tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DraftKind {
    /// A separate, smaller model.
    Model,
    /// The target's own first layers.
    SelfDraft,
    /// A search in the text so far.
    Lookup,
}

impl DraftKind {
    /// Number of kinds.
    pub const COUNT: usize = 3;
    /// Every kind, by index.
    pub const ALL: [Self; Self::COUNT] = [Self::Model, Self::SelfDraft, Self::Lookup];
    /// Those that cost forwards, of which a request uses one.
    pub const COMPUTING: [Self; 2] = [Self::Model, Self::SelfDraft];

    /// Its place in [`Self::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}
