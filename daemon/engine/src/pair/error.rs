//! Every reason why a pair does not load.

use std::path::PathBuf;

use tandem_prepared::StoreError;

use crate::backend::BackendError;
use crate::gguf::GgufError;
use crate::model::ModelError;
use crate::tokenizer::{TokenizerError, VocabularyDifference};

/// Why a pair cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read or is damaged.
    #[error("the {role} cannot be used: {source}")]
    File {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// What is wrong with it.
        source: GgufError,
    },
    /// A file is sound but not usable.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Model {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ModelError,
    },
    /// A tokenizer cannot be built.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Tokenizer {
        /// `target` or `draft`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenizerError,
    },
    /// Somebody wrote to a file that was being read.
    #[error(
        "the {role} `{path}` was written to while it was loaded; once it is whole, the next request or `tandem reload` \
         loads it"
    )]
    Changed {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The system has no room for the prepared weights.
    #[error(
        "the {role} cannot be loaded: {source}; free memory, or raise the limits of the process"
    )]
    Unmapped {
        /// `target` or `draft`.
        role: &'static str,
        /// What it said.
        source: StoreError,
    },
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
