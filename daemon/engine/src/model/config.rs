//! What distinguishes one decoder-only transformer from another, read from a GGUF file's metadata.

use crate::backend::{Activation, CacheShape, RopeStyle};
use crate::gguf::Gguf;
use crate::model::ModelError;

/// Shapes and switches of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// `general.architecture`.
    pub architecture: String,
    /// Decoder layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of one head.
    pub head_dim: usize,
    /// Tokens.
    pub vocabulary: usize,
    /// Positions the model was trained for.
    pub context_length: usize,
    /// Added to the mean square in norms.
    pub norm_eps: f32,
    /// Base of the rotary angles.
    pub rope_base: f32,
    /// How the angles apply.
    pub rope_style: RopeStyle,
    /// The function inside the gated MLP.
    pub activation: Activation,
    /// Factor on embeddings.
    pub embedding_scale: f32,
    /// Layers that see only near positions; `None`: every layer sees all.
    pub sliding: Option<Sliding>,
}

/// Layers with a sliding window among layers without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sliding {
    /// Positions that such a layer sees, the row's own counted.
    pub window: usize,
    /// Every so many layers, the last one sees all.
    pub pattern: usize,
    /// Rotary base of the layers with a window.
    pub rope_base: f32,
}

const SUPPORTED: &str = "llama (mistral included), qwen2, qwen3 and gemma3";

impl ModelConfig {
    /// Reads and checks the metadata.
    ///
    /// # Errors
    /// Names the key that is missing, out of range or not supported.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        let architecture = gguf.architecture()?;
        let (rope_style, activation) = match architecture {
            "llama" => (RopeStyle::Interleaved, Activation::Silu),
            "qwen2" | "qwen3" => (RopeStyle::Halves, Activation::Silu),
            "gemma3" => (RopeStyle::Halves, Activation::Gelu),
            other => {
                return Err(ModelError::Unsupported {
                    what: format!("the architecture `{other}`"),
                    supported: SUPPORTED,
                });
            }
        };
        let key = |name: &str| format!("{architecture}.{name}");
        let size = |name: &str| -> Result<usize, ModelError> {
            let value = gguf.u32(&key(name))?;
            // Far beyond any real model, and small enough that products of these cannot overflow.
            if value == 0 || value > 1 << 24 {
                return Err(ModelError::Inconsistent(format!(
                    "`{}` is {value}",
                    key(name)
                )));
            }
            Ok(value as usize)
        };
        let optional = |name: &str, otherwise: usize| match gguf.optional_u32(&key(name))? {
            Some(_) => size(name),
            None => Ok(otherwise),
        };
        let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let gemma = architecture == "gemma3";
        let config = Self {
            layers: size("block_count")?,
            width,
            heads,
            kv_heads: optional("attention.head_count_kv", heads)?,
            head_dim: optional("attention.key_length", width / heads)?,
            vocabulary: gguf
                .tensor("token_embd.weight")?
                .shape
                .get(1)
                .copied()
                .unwrap_or(0),
            context_length: size("context_length")?,
            norm_eps: gguf.f32(&key("attention.layer_norm_rms_epsilon"))?,
            rope_base: gguf
                .optional_f32(&key("rope.freq_base"))?
                .unwrap_or(if gemma { 1_000_000.0 } else { 10_000.0 }),
            rope_style,
            activation,
            embedding_scale: if gemma { (width as f32).sqrt() } else { 1.0 },
            sliding: match gemma {
                true => Some(Sliding {
                    window: size("attention.sliding_window")?,
                    pattern: 6,
                    rope_base: 10_000.0,
                }),
                false => None,
            },
            architecture: architecture.to_owned(),
        };
        config.check(gguf.optional_u32(&key("rope.dimension_count"))?)?;
        Ok(config)
    }

    fn check(&self, rope_dimensions: Option<u32>) -> Result<(), ModelError> {
        if self.head_dim == 0 || !self.head_dim.is_multiple_of(2) {
            return Err(ModelError::Inconsistent(format!(
                "heads have {} elements",
                self.head_dim
            )));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ModelError::Inconsistent(format!(
                "{} query heads do not share {} key heads evenly",
                self.heads, self.kv_heads
            )));
        }
        if rope_dimensions.is_some_and(|dimensions| dimensions as usize != self.head_dim) {
            return Err(ModelError::Unsupported {
                what: format!(
                    "a rotary embedding of {rope_dimensions:?} of {} elements",
                    self.head_dim
                ),
                supported: "models that turn whole heads",
            });
        }
        Ok(())
    }

    /// Extents of one sequence's cache.
    #[must_use]
    pub fn cache_shape(&self) -> CacheShape {
        CacheShape {
            layers: self.layers,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
        }
    }

    /// The window of a layer, where it has one.
    #[must_use]
    pub fn window(&self, layer: usize) -> Option<Sliding> {
        self.sliding
            .filter(|sliding| !(layer + 1).is_multiple_of(sliding.pattern))
    }
}
