//! Which tensors a model has, of which shapes; a file with any other is refused, since what it holds would go unused.

use std::collections::HashSet;

use super::{ModelConfig, ModelError};
use crate::gguf::{Gguf, shown};

/// An extent of a tensor.
#[derive(Clone, Copy)]
enum Extent {
    /// Of the residual stream.
    Width,
    /// Inside the MLP.
    Inner,
    /// All query heads.
    Queries,
    /// All key heads.
    Keys,
    /// One head.
    Head,
}

/// Whether a tensor has to be there.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Needed,
    /// In all layers or in none.
    Optional,
}

use Extent::{Head, Inner, Keys, Queries, Width};
use Presence::{Needed, Optional};

type Part = (&'static str, &'static [Extent], Presence);

/// What a block of every architecture has.
const BLOCK: &[Part] = &[
    ("attn_norm.weight", &[Width], Needed),
    ("attn_q.weight", &[Width, Queries], Needed),
    ("attn_k.weight", &[Width, Keys], Needed),
    ("attn_v.weight", &[Width, Keys], Needed),
    ("attn_output.weight", &[Queries, Width], Needed),
    ("attn_output.bias", &[Width], Optional),
    ("ffn_norm.weight", &[Width], Needed),
    ("ffn_gate.weight", &[Width, Inner], Needed),
    ("ffn_up.weight", &[Width, Inner], Needed),
    ("ffn_down.weight", &[Inner, Width], Needed),
];

const BIASES: [(&str, &[Extent]); 3] = [
    ("attn_q.bias", &[Queries]),
    ("attn_k.bias", &[Keys]),
    ("attn_v.bias", &[Keys]),
];

const HEAD_NORMS: &[Part] = &[
    ("attn_q_norm.weight", &[Head], Needed),
    ("attn_k_norm.weight", &[Head], Needed),
];

const POST_NORMS: &[Part] = &[
    ("post_attention_norm.weight", &[Width], Needed),
    ("post_ffw_norm.weight", &[Width], Needed),
];

/// What a block of an architecture has beside that.
fn more(architecture: &str) -> Vec<Part> {
    // A qwen2 without them is not whole; elsewhere a model was trained with them or without.
    let presence = if architecture == "qwen2" {
        Needed
    } else {
        Optional
    };
    let mut parts: Vec<Part> = BIASES
        .iter()
        .map(|(name, shape)| (*name, *shape, presence))
        .collect();
    if matches!(architecture, "qwen3" | "gemma3") {
        parts.extend(HEAD_NORMS);
    }
    if architecture == "gemma3" {
        parts.extend(POST_NORMS);
    }
    parts
}

/// Extents in numbers, by which tensors are checked.
struct Sizes<'a> {
    gguf: &'a Gguf,
    config: &'a ModelConfig,
    /// Width inside the MLP, of each layer.
    inner: Vec<usize>,
    known: HashSet<String>,
}

/// Checks that a model has all its tensors, in their shapes, and no other.
///
/// # Errors
/// Names the tensor.
pub(super) fn check(gguf: &Gguf, config: &ModelConfig) -> Result<(), ModelError> {
    let mut sizes = Sizes::of(gguf, config)?;
    let (width, vocabulary) = (config.width, config.vocabulary);
    sizes.take("token_embd.weight", &[width, vocabulary])?;
    sizes.take("output_norm.weight", &[width])?;
    sizes.take_optional("output.weight", &[width, vocabulary])?;
    if config.architecture == "llama" {
        sizes.take_optional("rope_freqs.weight", &[config.head_dim / 2])?;
    }
    sizes.blocks(config.layers)?;
    sizes.nothing_else()
}

/// The same of an exit adapter: one block and a norm.
pub(super) fn check_exit(gguf: &Gguf, block: &ModelConfig) -> Result<(), ModelError> {
    let mut sizes = Sizes::of(gguf, block)?;
    sizes.take("output_norm.weight", &[block.width])?;
    sizes.blocks(1)?;
    sizes.nothing_else()
}

impl<'a> Sizes<'a> {
    fn of(gguf: &'a Gguf, config: &'a ModelConfig) -> Result<Self, ModelError> {
        let key = format!("{}.feed_forward_length", config.architecture);
        if config.layers > gguf.tensors().len() {
            return Err(ModelError::Inconsistent(format!(
                "it has {} layers and {} tensors",
                config.layers,
                gguf.tensors().len()
            )));
        }
        // Without the key the tensors say it.
        let gate = gguf.tensor("blk.0.ffn_gate.weight")?.shape.get(1);
        let first = gate.copied().unwrap_or(0);
        let stated = match gguf.numbers(&key) {
            Some(stated) => stated,
            None => vec![gguf.optional_u32(&key)?.map_or(first as f64, f64::from)],
        };
        let inner: Vec<usize> = match stated.as_slice() {
            [one] => vec![*one as usize; config.layers],
            each => each.iter().map(|inner| *inner as usize).collect(),
        };
        if inner.len() != config.layers || inner.contains(&0) {
            let layers = config.layers;
            return Err(ModelError::refused(
                gguf,
                &key,
                format!("{layers} layers need a width each"),
            ));
        }
        Ok(Self {
            gguf,
            config,
            inner,
            known: HashSet::new(),
        })
    }

    fn take(&mut self, name: &str, shape: &[usize]) -> Result<(), ModelError> {
        self.gguf.tensor(name)?;
        self.take_optional(name, shape).map(|_| ())
    }

    /// Whether it is there.
    fn take_optional(&mut self, name: &str, shape: &[usize]) -> Result<bool, ModelError> {
        let Some(tensor) = self.gguf.find_tensor(name) else {
            return Ok(false);
        };
        if tensor.shape != shape {
            return Err(ModelError::Inconsistent(format!(
                "`{name}` is {:?} and should be {shape:?}",
                tensor.shape
            )));
        }
        self.known.insert(name.to_owned());
        Ok(true)
    }

    fn blocks(&mut self, layers: usize) -> Result<(), ModelError> {
        let config = self.config;
        let parts: Vec<Part> = BLOCK
            .iter()
            .copied()
            .chain(more(&config.architecture))
            .collect();
        for (part, shape, presence) in parts {
            let mut without = None;
            let mut with = None;
            for layer in 0..layers {
                let extent = |extent: &Extent| match extent {
                    Width => config.width,
                    Inner => self.inner[layer],
                    Queries => config.heads * config.head_dim,
                    Keys => config.kv_heads * config.head_dim,
                    Head => config.head_dim,
                };
                let shape: Vec<usize> = shape.iter().map(extent).collect();
                let name = format!("blk.{layer}.{part}");
                match presence {
                    Needed => self.take(&name, &shape)?,
                    Optional if self.take_optional(&name, &shape)? => with = Some(layer),
                    Optional => without = Some(layer),
                }
            }
            if let (Some(with), Some(without)) = (with, without) {
                return Err(ModelError::Inconsistent(format!(
                    "layer {with} has a tensor `{part}` and layer {without} has none"
                )));
            }
        }
        Ok(())
    }

    fn nothing_else(&self) -> Result<(), ModelError> {
        let tensors = self.gguf.tensors().iter();
        match tensors
            .map(|tensor| &tensor.name)
            .find(|name| !self.known.contains(*name))
        {
            None => Ok(()),
            Some(name) => Err(ModelError::Refused {
                what: format!(
                    "its tensor `{}` would go unused",
                    shown(name, 120).escape_debug()
                ),
                expected: format!(
                    "the architecture `{}` with {} layers has no such tensor here",
                    self.config.architecture, self.config.layers
                ),
            }),
        }
    }
}
