//! The seam for hardware: the dozen operations that a decoder needs, on the backend's own weights, activations and
//! cache. A backend knows nothing of architectures, sequences' texts or speculation; it sees rows.

#[cfg(feature = "candle")]
pub mod candle;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod plan;

pub use crate::logits::Logits;
pub use plan::{Group, RowPlan};

use std::fmt::Debug;

use crate::TokenId;
use crate::gguf::{Gguf, GgufError, TensorInfo};
use tandem_kernels::Format;

/// What went wrong inside a backend operation.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The tensor library refused or failed; out of memory on a device arrives here too.
    #[error("the {operation} operation failed: {source}")]
    Operation {
        /// Which operation, such as `attention`.
        operation: &'static str,
        /// The library's own account.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The weights could not be read.
    #[error(transparent)]
    Weights(#[from] GgufError),
    /// A tensor's shape and bytes contradict each other.
    #[error(
        "the tensor `{name}` is damaged: {source}; pull the model again or choose another file"
    )]
    Pack {
        /// The tensor.
        name: String,
        /// What does not fit together.
        source: tandem_kernels::PackError,
    },
    /// The backend cannot compute with a tensor's format, which the cpu backend can.
    #[error(
        "the tensor `{name}` has the format {format:?}, which only the cpu backend computes with: set device = \"cpu\", or choose the model in another format"
    )]
    Format {
        /// The tensor.
        name: String,
        /// How its weights are stored.
        format: Format,
    },
    /// The backend has no code for it.
    #[error("the backend does not support {0}")]
    Unsupported(String),
    /// The system has no memory left.
    #[error("there are no {bytes} bytes of memory for {what}")]
    Memory {
        /// What it was to hold.
        what: &'static str,
        /// As asked for.
        bytes: usize,
    },
    /// The device asked for is not there.
    #[error("the device `{device}` cannot be used: {reason}")]
    Device {
        /// As configured.
        device: &'static str,
        /// Why, and what to do.
        reason: String,
    },
}

/// Extents of one sequence's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Decoder layers, each with its own keys and values.
    pub layers: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of one head.
    pub head_dim: usize,
}

/// How rotary embedding pairs the elements of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeStyle {
    /// Elements 2i and 2i+1 turn together (llama's layout in GGUF).
    Interleaved,
    /// Elements i and i + d/2 turn together (qwen, gemma).
    Halves,
}

/// The function inside the gated MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x · sigmoid(x).
    Silu,
    /// The tanh approximation of GELU.
    Gelu,
}

/// A root-mean-square norm over each consecutive run of its weight's length: whole rows, or the heads of a row.
#[derive(Debug)]
pub struct Norm<'a, B: Backend> {
    /// Factors after the division by the root mean square.
    pub weight: &'a B::Vector,
    /// Added to the mean square.
    pub eps: f32,
}

/// Rows that a product takes.
#[derive(Debug)]
pub enum Input<'a, B: Backend> {
    /// As they are, and for the last time.
    Rows(B::Hidden),
    /// Normed on the way.
    Normed(&'a B::Hidden, Norm<'a, B>),
}

/// How one layer attends.
#[derive(Debug)]
pub struct AttentionParams<'a, B: Backend> {
    /// Index into the cache's layers.
    pub layer: usize,
    /// Query heads; a multiple of the cache's heads.
    pub heads: usize,
    /// Factor on query · key.
    pub scale: f32,
    /// Positions a row sees at most, itself counted; `None`: all.
    pub window: Option<usize>,
    /// Norms over each head of queries and of keys, before they are turned.
    pub head_norms: Option<[Norm<'a, B>; 2]>,
    /// Angles by position.
    pub rope: &'a B::Rope,
    /// How the angles apply.
    pub rope_style: RopeStyle,
}

/// One linear map: weights, and a bias where the architecture has one.
#[derive(Debug)]
pub struct Linear<'a, B: Backend> {
    /// `[out, in]`.
    pub weight: &'a B::Matrix,
    /// `[out]`.
    pub bias: Option<&'a B::Vector>,
}

/// Hardware. Activations are `[rows, width]`; every operation works row by row, attention excepted.
#[expect(
    clippy::missing_errors_doc,
    reason = "every operation fails as BackendError says: memory, device or file"
)]
pub trait Backend: Sized + Send + 'static {
    /// Linear weights `[out, in]`, in the file's own quantized format.
    type Matrix: Debug + Send;
    /// Weights of a norm or a bias.
    type Vector: Debug + Send;
    /// Cosines and sines by position.
    type Rope: Debug + Send;
    /// Activations `[rows, width]`.
    type Hidden: Debug + Send;
    /// Keys and values of one sequence, all layers.
    type Cache: Send;

    /// What `status` shows, such as `cpu (candle)`.
    fn name(&self) -> &'static str;
    /// Whether a row's result is independent, to the bit, of the rows computed with it.
    fn batch_invariant(&self) -> bool;
    /// Computes on the calling thread alone from now on, or again on all threads. Means nothing to a device that computes
    /// by itself.
    fn alone(&mut self, alone: bool) {
        let _ = alone;
    }
    /// What is computed from now on will come again soon, or only perhaps: how much it is worth to prepare for that. Means
    /// nothing to a device that prepares nothing.
    fn rehearsing(&mut self, on: bool) {
        let _ = on;
    }
    /// How often something was prepared that later operations find done, such as recorded launches or memory: time in which
    /// this rises says nothing of what the same takes again. Always 0 where nothing of the kind takes long.
    fn preparations(&self) -> u64 {
        0
    }
    /// Bytes that one position of a cache takes.
    fn cache_bytes_per_position(&self, shape: CacheShape) -> u64;

    /// Loads a matrix.
    fn matrix(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<Self::Matrix, BackendError>;
    /// Loads a vector.
    fn vector(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<Self::Vector, BackendError>;
    /// Tabulates the angle `position · frequency` for each of `positions` positions.
    fn rope(&self, frequencies: &[f32], positions: usize) -> Result<Self::Rope, BackendError>;

    /// Makes an empty cache.
    fn cache(&self, shape: CacheShape) -> Result<Self::Cache, BackendError>;
    /// Makes room for `positions` positions in all; what is stored stays.
    fn reserve(&self, cache: &mut Self::Cache, positions: usize) -> Result<(), BackendError>;
    /// Moves the entries at `from + offsets[i]` to `from + i`: what remains of a tree is a chain. Offsets ascend.
    fn keep(
        &self,
        cache: &mut Self::Cache,
        from: usize,
        offsets: &[usize],
    ) -> Result<(), BackendError>;
    /// Copies the first `positions` positions into a new cache.
    fn fork(&self, cache: &Self::Cache, positions: usize) -> Result<Self::Cache, BackendError>;
    /// Bytes allocated, exactly.
    fn cache_bytes(&self, cache: &Self::Cache) -> u64;

    /// Copies rows, each out of any activations of one width, into new activations of `count` rows; at least one.
    fn gather<'a>(
        &self,
        count: usize,
        rows: impl Iterator<Item = (&'a Self::Hidden, usize)>,
    ) -> Result<Self::Hidden, BackendError>;
    /// Takes back the memory of activations that are no longer needed.
    fn release(&self, x: Self::Hidden);

    /// Looks up embedding rows and multiplies them by `scale`.
    fn embed(
        &self,
        table: &Self::Matrix,
        tokens: &[TokenId],
        scale: f32,
    ) -> Result<Self::Hidden, BackendError>;
    /// `x · wᵀ + bias` for each of several maps of the same rows.
    fn linear<const N: usize>(
        &self,
        x: Input<'_, Self>,
        maps: [Linear<'_, Self>; N],
    ) -> Result<[Self::Hidden; N], BackendError>;
    /// Norms and turns queries and keys, appends keys and values to the caches, one for each group of the plan, and
    /// attends: each row to what its sequence had stored for good and to its own ancestors in its tree.
    fn attention(
        &self,
        params: &AttentionParams<'_, Self>,
        qkv: [Self::Hidden; 3],
        plan: &RowPlan,
        caches: &mut [Self::Cache],
    ) -> Result<Self::Hidden, BackendError>;
    /// Norms and turns keys and appends them and values to the caches, as [`Self::attention`] does, and no more.
    fn remember(
        &self,
        params: &AttentionParams<'_, Self>,
        kv: [Self::Hidden; 2],
        plan: &RowPlan,
        caches: &mut [Self::Cache],
    ) -> Result<(), BackendError>;
    /// `down(activation(gate(x)) · up(x))`; `weights` are gate, up, down.
    fn gated_mlp(
        &self,
        x: Input<'_, Self>,
        weights: [&Self::Matrix; 3],
        activation: Activation,
    ) -> Result<Self::Hidden, BackendError>;
    /// `x += norm(y)`.
    fn add(
        &self,
        x: &mut Self::Hidden,
        y: Self::Hidden,
        norm: Option<Norm<'_, Self>>,
    ) -> Result<(), BackendError>;
    /// Norms the rows named, multiplies them by the LM head and brings the result to the host.
    fn logits(
        &self,
        x: Self::Hidden,
        norm: Norm<'_, Self>,
        rows: &[usize],
        head: &Self::Matrix,
        out: &mut Logits,
    ) -> Result<(), BackendError>;
}
