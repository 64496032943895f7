//! Decoder-only transformers: their configuration, the one decoder that runs them all, and the interface by which the
//! engine and the drafters use it.

mod config;
mod decoder;
mod exit;
mod keys;
mod layer;
mod parts;
mod pass;
mod rehearsal;
mod rope;
mod slots;
mod tensors;
#[cfg(test)]
mod tests;
mod weights;

pub use config::ModelConfig;
pub use decoder::Decoder;
pub(crate) use exit::ExitConfig;
pub use exit::{Exit, ExitAdapterInfo, check_layers};
pub(crate) use keys::foreign;
pub use rehearsal::Rehearsal;
pub use rope::{RopeConfig, Yarn};

use crate::TokenId;
use crate::backend::{BackendError, Logits};
use crate::gguf::{Gguf, GgufError};

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
    /// Index of the row that this one follows: among this slot's rows of the same forward, or among all rows of the
    /// slot's open tree where the row joins that. `None`: it follows what the cache holds for good.
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
    /// The file says something of its computation that the decoder does not do, and that would be ignored.
    #[error(
        "the file asks for what is not computed here: {what}; {expected}; choose another file of the model"
    )]
    Refused {
        /// What it says: the key with its value, or the tensor.
        what: String,
        /// What would have been fine.
        expected: String,
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
    /// An exit adapter that does not fit the target.
    #[error(
        "the exit adapter was trained for another target: its {what} is {adapter} and the target's is {target}; choose \
         the adapter of this very target, or draft without one"
    )]
    ExitMismatch {
        /// What differs, such as "width".
        what: &'static str,
        /// The adapter's.
        adapter: f64,
        /// The target's.
        target: f64,
    },
    /// An exit where the model has none.
    #[error("a model of {available} layers cannot be left after {layers}; it can after 1 to {}", .available - 1)]
    ExitLayer {
        /// Layers before the exit.
        layers: usize,
        /// Layers there are, at least one.
        available: usize,
    },
    /// An exit through an adapter that was not loaded.
    #[error("the model has no exit adapter; load one, or leave after a layer without")]
    NoExitAdapter,
    /// More positions than the model was made for.
    #[error("position {position} is beyond the context of {context_length} tokens")]
    ContextOverflow {
        /// The first position beyond.
        position: usize,
        /// Positions there are.
        context_length: usize,
    },
}

/// A decoder with its caches. Weights are immutable; what a slot holds for good only grows by `forward` and `keep`, and
/// shrinks by `truncate` and `keep`.
///
/// Behind that a slot can have an **open tree**: rows that `grow` or `early` have computed and that later calls of the
/// same kind may build on. A call of the other kind starts a new tree; `forward`, `keep` and `truncate` close it.
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
    /// Opens a cache that begins with the first `positions` positions of another, no row of an open tree among them.
    ///
    /// # Errors
    /// Where memory is short.
    fn fork(&mut self, slot: Slot, positions: usize) -> Result<Slot, ModelError>;
    /// Drops a cache.
    fn close(&mut self, slot: Slot);
    /// Positions that the cache holds for good.
    fn cached(&self, slot: Slot) -> usize;
    /// Forgets all positions from `positions` on, and the open tree.
    fn truncate(&mut self, slot: Slot, positions: usize);
    /// Keeps of the positions from `from` on only those at `from + offsets[i]`, which become a chain. Ascending. Rows of
    /// an open tree lie behind what is held for good, in the order they joined, and are kept so too; an early tree's
    /// are not, because they have not passed all layers.
    ///
    /// # Errors
    /// Where the device fails.
    fn keep(&mut self, slot: Slot, from: usize, offsets: &[usize]) -> Result<(), ModelError>;
    /// Makes the last positions that the cache holds for good an open tree of one branch; `tokens` are theirs. What was an
    /// open tree is forgotten.
    fn reopen(&mut self, slot: Slot, tokens: &[TokenId]);
    /// Computes on the calling thread alone from now on, or again on all threads: a draft that goes on while the target
    /// computes must not take the target's. Means nothing where the device is not the CPU.
    fn alone(&mut self, alone: bool);
    /// What is computed from now on will come again soon, or only perhaps.
    fn rehearsing(&mut self, on: bool);
    /// How often something was prepared that later passes find done: a pass during which this rises says nothing of what
    /// passes like it cost.
    fn preparations(&self) -> u64;
    /// Bytes that all caches occupy, the exit adapter's aside.
    fn cache_bytes(&self) -> u64;
    /// Bytes that one more position takes, the exit adapter's aside.
    fn cache_bytes_per_position(&self) -> u64;

    /// Feeds the rows, appends them to their caches, and returns the logits of the rows `want`ed, in that order. Rows
    /// of one slot are contiguous and parents precede their children. After an error no cache has changed its length.
    /// A forward like those before it allocates nothing, unless a cache must grow.
    ///
    /// Of a slot with an early tree, the leading rows that are the tree's own, by token and parent, go on from where
    /// they left. The logits are to the bit those of a forward without, where the backend is batch-invariant.
    ///
    /// # Errors
    /// A token or position out of range; a failing device.
    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError>;
    /// Like [`Self::forward`], but the rows join their slots' open trees, and nothing is held for good.
    ///
    /// # Errors
    /// As [`Self::forward`].
    fn grow(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError>;
    /// Like [`Self::grow`] through the first layers only: the rows leave at `exit`, whose logits are returned. The
    /// model keeps their residual streams for the forward that verifies them.
    ///
    /// # Errors
    /// As [`Self::forward`], and where the model has no such exit.
    fn early(&mut self, rows: &[Row], want: &[usize], exit: Exit) -> Result<&Logits, ModelError>;
    /// Bytes of weights that a row reads on its way to an exit and through it, per byte that a forward reads.
    ///
    /// # Errors
    /// Where the model has no such exit.
    fn exit_cost(&self, exit: Exit) -> Result<f64, ModelError>;
    /// Loads an exit adapter. `progress` is told the bytes of each tensor as it is read.
    ///
    /// # Errors
    /// A damaged file, or one that was made for another model.
    ///
    /// # Panics
    /// If a slot is open: the adapter would miss what that holds.
    fn attach_exit(&mut self, gguf: &Gguf, progress: &mut dyn FnMut(u64))
    -> Result<(), ModelError>;
    /// Drops the exit adapter, its caches and all early trees; does nothing where there is none.
    fn detach_exit(&mut self);
    /// What the exit adapter is and holds, where there is one.
    fn exit_adapter(&self) -> Option<ExitAdapterInfo>;
}
