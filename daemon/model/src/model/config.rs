//! What distinguishes one decoder-only transformer from another, read from a GGUF file's metadata.

use crate::backend::{Activation, CacheShape, RopeStyle};
use crate::gguf::{Gguf, shown};
use crate::model::{ModelError, RopeConfig, keys, tensors};

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
    /// The rotary angles, of layers that see all.
    pub rope: RopeConfig,
    /// How the angles apply.
    pub rope_style: RopeStyle,
    /// The function inside the gated MLP.
    pub activation: Activation,
    /// Factor on embeddings.
    pub embedding_scale: f32,
    /// Factor on query · key, those of the angles aside.
    pub attention_scale: f32,
    /// Layers that see only near positions; `None`: every layer sees all.
    pub sliding: Option<Sliding>,
}

/// Layers with a sliding window among layers without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sliding {
    /// Positions that such a layer sees, the row's own counted.
    pub window: usize,
    /// Every so many layers, the last one sees all; `None`: no layer does.
    pub pattern: Option<usize>,
    /// The rotary angles of the layers with a window.
    pub rope: RopeConfig,
}

const SUPPORTED: &str = "llama (mistral included), qwen2, qwen3 and gemma3";

impl ModelConfig {
    /// Reads and checks the metadata, and that the file has the tensors of such a model and no others.
    ///
    /// # Errors
    /// Names the key or tensor that is missing, out of range, or says what is not computed here.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self, ModelError> {
        keys::check_kind(gguf)?;
        let architecture = gguf.architecture()?;
        let (rope_style, activation) = match architecture {
            "llama" => (RopeStyle::Interleaved, Activation::Silu),
            "qwen2" | "qwen3" => (RopeStyle::Halves, Activation::Silu),
            "gemma3" => (RopeStyle::Halves, Activation::Gelu),
            other => {
                return Err(ModelError::Unsupported {
                    what: format!("the architecture `{}`", shown(other, 80).escape_debug()),
                    supported: SUPPORTED,
                });
            }
        };
        keys::check(gguf, architecture)?;
        let keys = Keys { gguf, architecture };
        let (width, heads) = (
            keys.size("embedding_length")?,
            keys.size("attention.head_count")?,
        );
        let (layers, context_length) = (keys.size("block_count")?, keys.size("context_length")?);
        let gemma = architecture == "gemma3";
        let head_dim = keys.optional_size("attention.key_length", width / heads)?;
        let base = keys.factor("rope.freq_base", if gemma { 1_000_000.0 } else { 10_000.0 })?;
        // What the largest of its sizes was trained with, and no key says.
        let head_width = if gemma && layers == GEMMA3_27B_LAYERS {
            width / heads
        } else {
            head_dim
        };
        let rope = RopeConfig::read(gguf, architecture, base, context_length)?;
        let config = Self {
            layers,
            width,
            heads,
            kv_heads: keys.optional_size("attention.head_count_kv", heads)?,
            head_dim,
            vocabulary: gguf
                .tensor("token_embd.weight")?
                .shape
                .get(1)
                .copied()
                .unwrap_or(0),
            context_length,
            norm_eps: keys.epsilon()?,
            rope,
            rope_style,
            activation,
            embedding_scale: keys.factor(
                "embedding_scale",
                if gemma { (width as f32).sqrt() } else { 1.0 },
            )?,
            attention_scale: keys.factor("attention.scale", (head_width as f32).sqrt().recip())?,
            sliding: keys.sliding(layers, context_length, rope)?,
            architecture: architecture.to_owned(),
        };
        config.check(&keys)?;
        tensors::check(gguf, &config)?;
        Ok(config)
    }

    fn check(&self, keys: &Keys<'_>) -> Result<(), ModelError> {
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
        for (name, what) in [
            ("rope.dimension_count", "heads are turned as a whole"),
            ("attention.value_length", "values are as long as keys"),
        ] {
            if keys.optional_size(name, self.head_dim)? != self.head_dim {
                let expected = format!("{what}, which have {} elements", self.head_dim);
                return Err(ModelError::refused(keys.gguf, &keys.name(name), expected));
            }
        }
        // More rows than tokens are padding, which many models have.
        let tokens = keys.optional_size("vocab_size", self.vocabulary)?;
        if tokens > self.vocabulary {
            return Err(ModelError::Inconsistent(format!(
                "it has {tokens} tokens and rows for {}",
                self.vocabulary
            )));
        }
        Ok(())
    }

    /// The angles of a layer.
    #[must_use]
    pub fn layer_rope(&self, layer: usize) -> RopeConfig {
        self.window(layer).map_or(self.rope, |sliding| sliding.rope)
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
        let sees_all = |pattern: usize| (layer + 1).is_multiple_of(pattern);
        self.sliding
            .filter(|sliding| !sliding.pattern.is_some_and(sees_all))
    }
}

/// Layers of the one gemma3 whose queries are scaled otherwise.
const GEMMA3_27B_LAYERS: usize = 62;

/// The keys of an architecture.
struct Keys<'a> {
    gguf: &'a Gguf,
    architecture: &'a str,
}

impl Keys<'_> {
    fn name(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// A size that has to be there.
    fn size(&self, name: &str) -> Result<usize, ModelError> {
        let key = self.name(name);
        let value = match self.gguf.numbers(&key).as_deref() {
            // One for each layer is as good as one, where all are the same.
            Some([first, rest @ ..]) if !rest.is_empty() => {
                if rest.iter().any(|other| other != first) {
                    let expected = "all layers have to be alike";
                    return Err(ModelError::refused(self.gguf, &key, expected));
                }
                *first as u32
            }
            _ => self.gguf.u32(&key)?,
        };
        // Far beyond any real model, and small enough that products of these cannot overflow.
        if value == 0 || value > 1 << 24 {
            return Err(ModelError::Inconsistent(format!("`{key}` is {value}")));
        }
        Ok(value as usize)
    }

    fn optional_size(&self, name: &str, otherwise: usize) -> Result<usize, ModelError> {
        match self.gguf.has(&self.name(name)) {
            true => self.size(name),
            false => Ok(otherwise),
        }
    }

    /// A factor that is above 0; 0 stands for what there is without it.
    fn factor(&self, name: &str, otherwise: f32) -> Result<f32, ModelError> {
        let key = self.name(name);
        match self.gguf.optional_f32(&key)? {
            None | Some(0.0) => Ok(otherwise),
            Some(value) if value.is_finite() && value > 0.0 => Ok(value),
            Some(_) => Err(ModelError::refused(self.gguf, &key, "it has to be above 0")),
        }
    }

    fn epsilon(&self) -> Result<f32, ModelError> {
        let key = self.name("attention.layer_norm_rms_epsilon");
        let value = self.gguf.f32(&key)?;
        match value.is_finite() && value >= 0.0 {
            true => Ok(value),
            false => Err(ModelError::refused(
                self.gguf,
                &key,
                "it has to be 0 or more",
            )),
        }
    }

    /// Layers with a window.
    fn sliding(
        &self,
        layers: usize,
        context_length: usize,
        rope: RopeConfig,
    ) -> Result<Option<Sliding>, ModelError> {
        const WINDOW: &str = "attention.sliding_window";
        let key = self.name(WINDOW);
        // Some writers put 0 where there is none.
        if self.gguf.numbers(&key).as_deref() == Some(&[0.0]) {
            return Ok(None);
        }
        match self.architecture {
            "gemma3" => Ok(Some(Sliding {
                window: self.size(WINDOW)?,
                pattern: Some(self.pattern(layers)?),
                rope: RopeConfig::plain(self.factor("rope.freq_base_swa", 10_000.0)?),
            })),
            _ if !self.gguf.has(&key) => Ok(None),
            // All layers of the first mistral have one.
            "llama" => Ok(Some(Sliding {
                window: self.size(WINDOW)?,
                pattern: None,
                rope,
            })),
            // Which layers of a qwen have one is in no key.
            _ if self.size(WINDOW)? >= context_length => Ok(None),
            _ => {
                let expected = "which layers have the window is not said";
                Err(ModelError::refused(self.gguf, &key, expected))
            }
        }
    }

    /// Every so many layers, the last one sees all.
    fn pattern(&self, layers: usize) -> Result<usize, ModelError> {
        const USUAL: usize = 6;
        let key = self.name("attention.sliding_window_pattern");
        match self.gguf.numbers(&key).as_deref() {
            None | Some([_]) => self.optional_size("attention.sliding_window_pattern", USUAL),
            // One truth value for each layer: whether it has a window.
            Some(each) => {
                let first = each.iter().position(|window| *window == 0.0);
                let pattern = first.map_or(layers + 1, |layer| layer + 1);
                let regular = |(layer, window): (usize, &f64)| {
                    (*window == 0.0) == (layer + 1).is_multiple_of(pattern)
                };
                match each.len() == layers && each.iter().enumerate().all(regular) {
                    true => Ok(pattern),
                    false => {
                        let expected = "every so many layers the last one sees all";
                        Err(ModelError::refused(self.gguf, &key, expected))
                    }
                }
            }
        }
    }
}
