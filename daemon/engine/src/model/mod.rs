//! Decoder-only transformers: their configuration, the one decoder that runs them all, and the interface by which the
//! engine and the drafters use it.

mod config;
mod decoder;
mod layer;
mod weights;

pub use config::ModelConfig;
pub use decoder::Decoder;

use crate::TokenId;
use crate::backend::{BackendError, Logits};
use crate::gguf::GgufError;

/// Names one sequence's cache inside a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(usize);

/// One row of a forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose cache the row reads and extends.
    pub slot: Slot,
    /// What is fed.
    pub token: TokenId,
    /// Index, among this slot's rows of the same forward, of the row that this one follows; `None`: it follows what
    /// the cache holds.
    pub parent: Option<usize>,
}

impl Row {
    /// Rows of which each follows the one before, the first what the cache holds.
    pub fn chain(slot: Slot, tokens: &[TokenId]) -> impl Iterator<Item = Self> {
        tokens.iter().enumerate().map(move |(i, token)| Self {
            slot,
            token: *token,
            parent: i.checked_sub(1),
        })
    }
}

/// What went wrong in a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be read or is damaged.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// The hardware failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The decoder does not cover what the file asks for.
    #[error("{what} is not supported; supported are {supported}")]
    Unsupported {
        /// What was found, such as "the architecture `mamba`".
        what: String,
        /// What would have been fine.
        supported: &'static str,
    },
    /// The file contradicts itself.
    #[error("the model file contradicts itself: {0}; pull it again or choose another file")]
    Inconsistent(String),
    /// A token beyond the vocabulary.
    #[error("token {token} is beyond the vocabulary of {vocabulary} tokens")]
    TokenOutOfVocabulary {
        /// The token.
        token: TokenId,
        /// Tokens there are.
        vocabulary: usize,
    },
    /// More positions than the model was made for.
    #[error("position {position} is beyond the context of {context_length} tokens")]
    ContextOverflow {
        /// The first position beyond.
        position: usize,
        /// Positions there are.
        context_length: usize,
    },
}

/// A decoder with its caches. Weights are immutable; each slot's cache only grows by `forward` and shrinks by
/// `truncate` and `keep`.
pub trait LanguageModel: Send {
    /// What the model is.
    fn config(&self) -> &ModelConfig;
    /// What it runs on, such as `cpu (candle)`.
    fn backend(&self) -> &'static str;
    /// Whether a row's logits are independent, to the bit, of the rows computed with it.
    fn batch_invariant(&self) -> bool;

    /// Opens an empty cache.
    ///
    /// # Errors
    /// Where memory is short.
    fn open(&mut self) -> Result<Slot, ModelError>;
    /// Opens a cache that begins with the first `positions` positions of another.
    ///
    /// # Errors
    /// Where memory is short.
    fn fork(&mut self, slot: Slot, positions: usize) -> Result<Slot, ModelError>;
    /// Drops a cache.
    fn close(&mut self, slot: Slot);
    /// Positions that the cache holds.
    fn cached(&self, slot: Slot) -> usize;
    /// Forgets all positions from `positions` on.
    fn truncate(&mut self, slot: Slot, positions: usize);
    /// Keeps of the positions from `from` on only those at `from + offsets[i]`, which become a chain. Ascending.
    ///
    /// # Errors
    /// Where the device fails.
    fn keep(&mut self, slot: Slot, from: usize, offsets: &[usize]) -> Result<(), ModelError>;
    /// Bytes that all caches occupy.
    fn cache_bytes(&self) -> u64;
    /// Bytes that one more position takes.
    fn cache_bytes_per_position(&self) -> u64;

    /// Feeds the rows, appends them to their caches, and returns the logits of the rows `want`ed, in that order. Rows
    /// of one slot are contiguous and parents precede their children. After an error no cache has changed its length.
    /// A forward like those before it allocates nothing, unless a cache must grow.
    ///
    /// # Errors
    /// A token or position out of range; a failing device.
    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError>;
}
