//! Drafters: whatever guesses continuations for the target to verify.

pub mod lookup;
mod model;

pub use model::ModelDrafter;

use crate::model::ModelError;
use crate::sampling::Sampler;
use crate::verify::Draft;
use crate::{SequenceId, TokenId};

/// What a drafter may see of a sequence it serves.
#[derive(Debug)]
pub struct DraftRequest<'a> {
    /// Whose tokens these are.
    pub id: SequenceId,
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

    /// Proposes a draft for each request, in order.
    ///
    /// # Errors
    /// Where its model fails. The engine then goes on without drafting.
    fn draft(&mut self, requests: &mut [DraftRequest<'_>]) -> Result<Vec<Draft>, ModelError>;

    /// Forgets a sequence.
    fn release(&mut self, id: SequenceId);

    /// Bytes of its weights.
    fn weight_bytes(&self) -> u64;

    /// How many bytes of them are mapped from a prepared file.
    fn mapped_bytes(&self) -> u64 {
        0
    }

    /// Bytes of its caches.
    fn cache_bytes(&self) -> u64;

    /// Bytes that one more position takes in its caches.
    fn cache_bytes_per_position(&self) -> u64;
}
