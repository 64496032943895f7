//! Every reason why a pair does not load.

use tandem_model::backend::BackendError;
use tandem_model::load::FileError;
use tandem_model::tokenizer::VocabularyDifference;

/// Why a pair cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// One of its files.
    #[error(transparent)]
    File(#[from] FileError),
    /// The models do not speak the same tokens.
    #[error(
        "the draft's vocabulary is not the target's: {0}; choose a draft of the same model family"
    )]
    Vocabulary(VocabularyDifference),
    /// More memory than allowed.
    #[error(
        "the pair needs {needed} bytes ({weights} of weights, {cache} for one context of {context_length} tokens) and \
         the budget is {budget}; raise memory.budget, lower context_length, or choose a smaller model"
    )]
    Budget {
        /// Bytes in all.
        needed: u64,
        /// Bytes of weights.
        weights: u64,
        /// Bytes of caches.
        cache: u64,
        /// Tokens of context.
        context_length: usize,
        /// Bytes allowed.
        budget: u64,
    },
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] BackendError),
}
