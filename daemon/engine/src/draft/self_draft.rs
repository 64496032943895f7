//! The target's own first layers as drafter.

use tandem_model::model::{Exit, ExitAdapterInfo, LanguageModel, ModelError, Row};

use super::distributions::Distributions;
use super::growth::{Open, expand_all, next_round};
use super::{DraftRequest, Drafter, Drafting};
use crate::SequenceId;
use crate::policy::{CatchUp, DraftKind};

/// Drafts by leaving the target early. What it computes is the target's own: keys and values lie in the target's cache,
/// and verification goes on from the residual streams. It keeps nothing of a sequence, so there is nothing to bring in
/// step.
#[derive(Debug)]
pub struct SelfDrafter {
    exit: Exit,
    weight_bytes: u64,
    cache_bytes_per_position: u64,
    distributions: Distributions,
}

impl SelfDrafter {
    /// Drafts by the exits of `target`.
    ///
    /// # Errors
    /// Where it has no such exit.
    pub fn new(target: &dyn LanguageModel, exit: Exit) -> Result<Self, ModelError> {
        target.exit_cost(exit)?;
        let adapter = adapter(target, exit);
        Ok(Self {
            exit,
            weight_bytes: adapter.map_or(0, |adapter| adapter.weight_bytes),
            cache_bytes_per_position: adapter.map_or(0, |adapter| adapter.cache_bytes_per_position),
            distributions: Distributions::default(),
        })
    }

    /// Where it leaves the target.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

/// The exit adapter, where the exit goes through it.
fn adapter(target: &dyn LanguageModel, exit: Exit) -> Option<ExitAdapterInfo> {
    target.exit_adapter().filter(|_| exit == Exit::Adapter)
}

impl Drafter for SelfDrafter {
    fn kind(&self) -> DraftKind {
        DraftKind::SelfDraft
    }

    fn name(&self) -> &'static str {
        "self"
    }

    fn draft(
        &mut self,
        step: Drafting<'_>,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<CatchUp, ModelError> {
        let (kind, plan, target) = (self.kind(), step.plan, step.target);
        let (mut places, mut rows, mut want) = (Vec::new(), Vec::new(), Vec::new());
        let mut fed = vec![0; requests.len()];
        for (index, request) in requests.iter().enumerate() {
            let cached = target.cached(request.slot);
            // A tree that was drafted and never verified is none of this draft.
            target.truncate(request.slot, cached);
            let pending = &request.tokens[cached..];
            if !pending.is_empty() && plan.round(request.seat, kind, 0, 1.0) {
                rows.extend(Row::chain(request.slot, pending));
                want.push(rows.len() - 1);
                fed[index] = pending.len();
                places.push(Open::root(index, pending.len().checked_sub(1)));
            }
        }
        let mut nodes: Vec<Vec<usize>> = vec![Vec::new(); requests.len()];
        while !places.is_empty() {
            let logits = target.early(&rows, &want, self.exit)?;
            let pool = &mut self.distributions;
            let mut next = Vec::new();
            expand_all(kind, plan, requests, &places, logits, pool, &mut next)?;
            let slot = |request: usize| requests[request].slot;
            next_round(kind, plan, requests, &mut next, &mut fed, slot, &mut rows);
            for place in &next {
                nodes[place.request].extend(place.node);
            }
            want.clear();
            want.extend(0..rows.len());
            places = next;
        }
        // Verification resumes where its rows begin like the early ones.
        for (request, nodes) in requests.iter_mut().zip(&nodes) {
            request.proposal.reorder(nodes);
        }
        Ok(CatchUp::default())
    }

    fn behind(&self, _id: SequenceId, _tokens: usize) -> usize {
        0
    }

    fn release(&mut self, _id: SequenceId) {}

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn cache_bytes(&self, target: &dyn LanguageModel) -> u64 {
        adapter(target, self.exit).map_or(0, |adapter| adapter.cache_bytes)
    }

    fn cache_bytes_per_position(&self) -> u64 {
        self.cache_bytes_per_position
    }
}
