//! Drafters: whatever guesses continuations for the target to verify.

mod agreement;
mod chain;
mod model;
mod self_draft;

pub use agreement::{ExitEstimate, choose_exit, measure_exits};
pub use model::ModelDrafter;
pub use self_draft::SelfDrafter;

use crate::model::{LanguageModel, ModelError, Slot};
use crate::sampling::Sampler;
use crate::verify::Draft;
use crate::{SequenceId, TokenId};

/// What a drafter may see of a sequence it serves.
#[derive(Debug)]
pub struct DraftRequest<'a> {
    /// Whose tokens these are.
    pub id: SequenceId,
    /// The target's cache of the sequence; the tokens from its length on have yet to be fed.
    pub slot: Slot,
    /// Every committed token, prompt included.
    pub tokens: &'a [TokenId],
    /// The sequence's sampler: a draft is drawn with the same transforms, and with the same noise where the request
    /// has a seed.
    pub sampler: &'a mut Sampler,
    /// Most tokens to draft; 0 asks only to keep up.
    pub max_len: usize,
}

/// Guesses continuations. It may propose fewer tokens than asked for, or none; it never needs to be told what was
/// accepted, because the next request's tokens say it.
pub trait Drafter: Send {
    /// Names the method in statistics, such as `model`.
    fn name(&self) -> &'static str;

    /// Proposes a draft for each request, in order. `target` is the pair's target, for drafters that use its layers;
    /// what its caches hold for good does not change.
    ///
    /// # Errors
    /// Where its model fails. The engine then goes on without drafting.
    fn draft(
        &mut self,
        target: &mut dyn LanguageModel,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<Vec<Draft>, ModelError>;

    /// Forgets a sequence.
    fn release(&mut self, id: SequenceId);

    /// Bytes of its weights, those of the target that it uses aside.
    fn weight_bytes(&self) -> u64;

    /// How many bytes of them are mapped from a prepared file.
    fn mapped_bytes(&self) -> u64 {
        0
    }

    /// Bytes of its caches, which `target` may hold for it; the target's own aside.
    fn cache_bytes(&self, target: &dyn LanguageModel) -> u64;

    /// Bytes that one more position takes in its caches.
    fn cache_bytes_per_position(&self) -> u64;
}
