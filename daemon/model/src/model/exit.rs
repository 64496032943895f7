//! Leaving the model early: where, and through which adapter.
//!
//! An exit adapter is a block and a norm that were trained to stand for all layers after the exit; the LM head is the
//! target's. Its block has keys and values of its own, in step with the target's cache. What it needs of a row is the
//! residual stream at the exit, which every row passes on its way through the target: so each forward stores the
//! adapter's keys and values of its rows there (two small products), and no row has to be caught up with later.

use super::weights::{Block, Loader};
use super::{ModelConfig, ModelError, keys, tensors};
use crate::backend::Backend;
use crate::gguf::Gguf;

/// Where rows leave the model early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Where the model's exit adapter was trained to take over, and through it.
    Adapter,
    /// After so many layers, straight to the model's last norm and LM head.
    Layer(usize),
}

/// What is known of a model's exit adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitAdapterInfo {
    /// Layers of the model before it.
    pub layers: usize,
    /// Bytes of its weights.
    pub weight_bytes: u64,
    /// Bytes that its caches occupy.
    pub cache_bytes: u64,
    /// Bytes that one more position takes in its caches.
    pub cache_bytes_per_position: u64,
}

/// The architecture that an exit adapter's file names.
const ARCHITECTURE: &str = "llama-exit";

/// Shapes of an exit adapter, checked against its target.
#[derive(Clone, Debug)]
pub(crate) struct ExitConfig {
    /// Layers of the target before it.
    pub(crate) layers: usize,
    /// Of its one block, as the target's blocks are described.
    pub(crate) block: ModelConfig,
}

impl ExitConfig {
    /// Reads the metadata and compares it with the target's.
    ///
    /// # Errors
    /// Names what does not fit, with both numbers.
    pub(crate) fn from_gguf(gguf: &Gguf, target: &ModelConfig) -> Result<Self, ModelError> {
        let architecture = gguf.architecture()?;
        if architecture != ARCHITECTURE {
            return Err(ModelError::Unsupported {
                what: format!("an exit adapter of the architecture `{architecture}`"),
                supported: "adapters of the architecture `llama-exit`",
            });
        }
        if target.architecture != "llama" {
            return Err(ModelError::Unsupported {
                what: format!(
                    "an exit adapter for a target of the architecture `{}`",
                    target.architecture
                ),
                supported: "targets of the architecture `llama`",
            });
        }
        keys::check(gguf, ARCHITECTURE)?;
        let number = |name: &str| -> Result<f64, ModelError> {
            Ok(f64::from(gguf.u32(&format!("{ARCHITECTURE}.{name}"))?))
        };
        let rope_base = gguf.f32(&format!("{ARCHITECTURE}.rope.freq_base"))?;
        let sizes = [
            ("width", number("embedding_length")?, target.width as f64),
            (
                "number of query heads",
                number("attention.head_count")?,
                target.heads as f64,
            ),
            (
                "number of key heads",
                number("attention.head_count_kv")?,
                target.kv_heads as f64,
            ),
            (
                "size of a head",
                number("rope.dimension_count")?,
                target.head_dim as f64,
            ),
            (
                "rotary base",
                f64::from(rope_base),
                f64::from(target.rope.base),
            ),
        ];
        if let Some((what, adapter, target)) = sizes.into_iter().find(|(_, a, b)| a != b) {
            return Err(ModelError::ExitMismatch {
                what,
                adapter,
                target,
            });
        }
        let blocks = number("block_count")?;
        if blocks != 1.0 {
            return Err(ModelError::Unsupported {
                what: format!("an exit adapter of {blocks} blocks"),
                supported: "adapters of one block",
            });
        }
        let layers = gguf.u32(&format!("{ARCHITECTURE}.exit_layer"))? as usize;
        check_layers(layers, target.layers)?;
        let block = ModelConfig {
            architecture: ARCHITECTURE.to_owned(),
            layers: 1,
            norm_eps: gguf.f32(&format!("{ARCHITECTURE}.attention.layer_norm_rms_epsilon"))?,
            ..target.clone()
        };
        tensors::check_exit(gguf, &block)?;
        Ok(Self { layers, block })
    }
}

/// Checks that a model of `available` layers can be left after `layers`.
///
/// # Errors
/// [`ModelError::ExitLayer`] where it cannot.
pub fn check_layers(layers: usize, available: usize) -> Result<(), ModelError> {
    if (1..available).contains(&layers) {
        Ok(())
    } else {
        Err(ModelError::ExitLayer { layers, available })
    }
}

/// An exit adapter on a backend.
pub(super) struct Adapter<B: Backend> {
    pub(super) config: ExitConfig,
    pub(super) block: Block<B>,
    pub(super) norm: B::Vector,
    pub(super) weight_bytes: u64,
}

impl<B: Backend> Adapter<B> {
    pub(super) fn load(
        backend: &B,
        gguf: &Gguf,
        target: &ModelConfig,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ModelError> {
        let config = ExitConfig::from_gguf(gguf, target)?;
        let mut loader = Loader {
            backend,
            gguf,
            progress,
        };
        Ok(Self {
            block: loader.block(&config.block, 0)?,
            norm: loader.vector("output_norm.weight", config.block.width)?,
            weight_bytes: gguf.tensors().iter().map(|tensor| tensor.bytes).sum(),
            config,
        })
    }
}

/// Bytes of weights that a row of one pass reads, by where they are.
#[derive(Debug)]
pub(super) struct WeightBytes {
    /// Of each block.
    blocks: Vec<u64>,
    /// Of the LM head.
    head: u64,
}

impl WeightBytes {
    pub(super) fn of(gguf: &Gguf, layers: usize) -> Self {
        let sum = |prefix: &str| -> u64 {
            let own = gguf
                .tensors()
                .iter()
                .filter(|tensor| tensor.name.starts_with(prefix));
            own.map(|tensor| tensor.bytes).sum()
        };
        let head = match gguf.find_tensor("output.weight").is_some() {
            true => "output.weight",
            false => "token_embd.weight",
        };
        Self {
            blocks: (0..layers)
                .map(|layer| sum(&format!("blk.{layer}.")))
                .collect(),
            head: sum(head),
        }
    }

    /// Those that a pass through `layers` layers and `extra` bytes reads, per byte that a whole pass does.
    pub(super) fn share(&self, layers: usize, extra: u64) -> f64 {
        let read = self.blocks[..layers].iter().sum::<u64>() + extra + self.head;
        let whole = self.blocks.iter().sum::<u64>() + self.head;
        read as f64 / whole.max(1) as f64
    }
}
