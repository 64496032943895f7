//! What the engine thread needs of an engine. The one implementation that serves is [`Engine`]; tests wrap it to fail in
//! chosen steps.

use std::time::Instant;

use tandem_engine::engine::{CacheClaims, Engine, MemoryUse, RequestError, ShedDraft, StepError};
use tandem_engine::pair::{LoadError, LoadedDraft};
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_engine::{Output, Request, SequenceId};

/// The part of [`Engine`] that the thread calls; see there.
pub(crate) trait Decode: Send {
    fn submit(&mut self, request: Request) -> Result<SequenceId, RequestError>;
    fn cancel(&mut self, id: SequenceId);
    fn has_work(&self) -> bool;
    fn step(&mut self, clock: &dyn Fn() -> Instant) -> Result<Vec<Output>, StepError>;
    fn steps(&self) -> u64;
    fn memory(&self) -> MemoryUse;
    fn counts(&self) -> (usize, usize);
    fn speculation_off_reason(&self) -> Option<&str>;
    fn speculation(&self) -> &SpeculationStats;
    fn step_costs(&self) -> Vec<StepCost>;
    fn shed_draft(&mut self, reason: String) -> ShedDraft;
    fn restore_draft(&mut self, draft: LoadedDraft) -> Result<Option<LoadedDraft>, LoadError>;
    fn hold(&mut self, hold: bool);
    fn trim(&mut self);
    fn set_cache_budget(&mut self, budget: u64, room: u64);
    fn cache_claims(&self) -> CacheClaims;
}

impl Decode for Engine {
    fn submit(&mut self, request: Request) -> Result<SequenceId, RequestError> {
        Self::submit(self, request)
    }

    fn cancel(&mut self, id: SequenceId) {
        Self::cancel(self, id);
    }

    fn has_work(&self) -> bool {
        Self::has_work(self)
    }

    fn step(&mut self, clock: &dyn Fn() -> Instant) -> Result<Vec<Output>, StepError> {
        Self::step(self, clock)
    }

    fn steps(&self) -> u64 {
        Self::steps(self)
    }

    fn memory(&self) -> MemoryUse {
        Self::memory(self)
    }

    fn counts(&self) -> (usize, usize) {
        Self::counts(self)
    }

    fn speculation_off_reason(&self) -> Option<&str> {
        Self::speculation_off_reason(self)
    }

    fn speculation(&self) -> &SpeculationStats {
        Self::speculation(self)
    }

    fn step_costs(&self) -> Vec<StepCost> {
        Self::step_costs(self)
    }

    fn shed_draft(&mut self, reason: String) -> ShedDraft {
        Self::shed_draft(self, reason)
    }

    fn restore_draft(&mut self, draft: LoadedDraft) -> Result<Option<LoadedDraft>, LoadError> {
        Self::restore_draft(self, draft)
    }

    fn hold(&mut self, hold: bool) {
        Self::hold(self, hold);
    }

    fn trim(&mut self) {
        Self::trim(self);
    }

    fn set_cache_budget(&mut self, budget: u64, room: u64) {
        Self::set_cache_budget(self, budget, room);
    }

    fn cache_claims(&self) -> CacheClaims {
        Self::cache_claims(self)
    }
}
