//! The target's own first layers as drafter.

use super::chain::{Chain, Distributions, drafts};
use super::{DraftRequest, Drafter};
use crate::SequenceId;
use crate::model::{Exit, ExitAdapterInfo, LanguageModel, ModelError, Row};
use crate::verify::Draft;

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
    fn name(&self) -> &'static str {
        "self"
    }

    fn draft(
        &mut self,
        target: &mut dyn LanguageModel,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<Vec<Draft>, ModelError> {
        let (mut chains, mut rows, mut want) = (Vec::new(), Vec::new(), Vec::new());
        for (index, request) in requests.iter().enumerate() {
            let cached = target.cached(request.slot);
            // A tree that was drafted and never verified is none of this draft.
            target.truncate(request.slot, cached);
            let pending = &request.tokens[cached..];
            if request.max_len > 0 && !pending.is_empty() {
                rows.extend(Row::chain(request.slot, pending));
                want.push(rows.len() - 1);
                chains.push(Chain::new(index, request.slot, pending.len()));
            }
        }
        let mut active: Vec<usize> = (0..chains.len()).collect();
        while !active.is_empty() {
            let logits = target.early(&rows, &want, self.exit)?;
            for (row, chain) in active.iter().enumerate() {
                let logits = logits.row(row);
                chains[*chain].draw(requests, logits, &mut self.distributions);
            }
            active.retain(|chain| chains[*chain].goes_on(requests));
            rows.clear();
            want.clear();
            for chain in &active {
                let chain = &mut chains[*chain];
                want.push(rows.len());
                rows.extend(chain.last().iter().map(|token| Row {
                    slot: chain.slot,
                    token: *token,
                    parent: chain.fed.checked_sub(1),
                }));
                chain.fed += 1;
            }
        }
        Ok(drafts(requests.len(), chains, &mut self.distributions))
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
