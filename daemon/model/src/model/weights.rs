//! Which tensors a decoder is made of, by their names in GGUF files.

use crate::backend::{self, Backend};
use crate::gguf::{Gguf, TensorInfo};
use crate::model::{ModelConfig, ModelError, RopeConfig};

/// One linear map with its bias, where the architecture has one.
pub(super) struct Linear<B: Backend> {
    pub(super) weight: B::Matrix,
    pub(super) bias: Option<B::Vector>,
}

impl<B: Backend> Linear<B> {
    /// As the backend takes it.
    pub(super) fn map(&self) -> backend::Linear<'_, B> {
        backend::Linear {
            weight: &self.weight,
            bias: self.bias.as_ref(),
        }
    }
}

/// One block.
pub(super) struct Block<B: Backend> {
    pub(super) attention_norm: B::Vector,
    pub(super) query: Linear<B>,
    pub(super) key: Linear<B>,
    pub(super) value: Linear<B>,
    /// Norms over each head of queries and keys (qwen3, gemma3).
    pub(super) head_norms: Option<[B::Vector; 2]>,
    pub(super) attention_out: Linear<B>,
    /// Norm of the attention's output before it joins the residual stream (gemma3).
    pub(super) attention_post_norm: Option<B::Vector>,
    pub(super) mlp_norm: B::Vector,
    /// Gate, up, down.
    pub(super) mlp: [B::Matrix; 3],
    /// Norm of the MLP's output before it joins the residual stream (gemma3).
    pub(super) mlp_post_norm: Option<B::Vector>,
}

/// A whole model.
pub(super) struct Weights<B: Backend> {
    pub(super) embedding: B::Matrix,
    pub(super) blocks: Vec<Block<B>>,
    pub(super) output_norm: B::Vector,
    /// `None`: the embedding serves as LM head.
    pub(super) head: Option<B::Matrix>,
    /// Angles of layers that see all, and of layers with a window.
    pub(super) ropes: [B::Rope; 2],
}

/// Loads tensors by name and checks their shapes.
pub(super) struct Loader<'a, B, P> {
    pub(super) backend: &'a B,
    pub(super) gguf: &'a Gguf,
    /// Told the bytes of each tensor as it arrives.
    pub(super) progress: P,
}

impl<'a, B: Backend, P: FnMut(u64)> Loader<'a, B, P> {
    fn matrix(
        &mut self,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<B::Matrix, ModelError> {
        let tensor = self.shaped(name, &[inputs, outputs])?;
        Ok(self.backend.matrix(self.gguf, tensor)?)
    }

    pub(super) fn vector(&mut self, name: &str, len: usize) -> Result<B::Vector, ModelError> {
        let tensor = self.shaped(name, &[len])?;
        Ok(self.backend.vector(self.gguf, tensor)?)
    }

    fn optional_vector(&mut self, name: &str, len: usize) -> Result<Option<B::Vector>, ModelError> {
        if self.gguf.find_tensor(name).is_some() {
            self.vector(name, len).map(Some)
        } else {
            Ok(None)
        }
    }

    fn linear(
        &mut self,
        stem: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Linear<B>, ModelError> {
        Ok(Linear {
            weight: self.matrix(&format!("{stem}.weight"), outputs, inputs)?,
            bias: self.optional_vector(&format!("{stem}.bias"), outputs)?,
        })
    }

    fn shaped(&mut self, name: &str, shape: &[usize]) -> Result<&'a TensorInfo, ModelError> {
        let tensor = self.gguf.tensor(name)?;
        if tensor.shape != shape {
            return Err(ModelError::Inconsistent(format!(
                "`{name}` is {:?} and should be {shape:?}",
                tensor.shape
            )));
        }
        (self.progress)(tensor.bytes);
        Ok(tensor)
    }

    pub(super) fn block(
        &mut self,
        config: &ModelConfig,
        layer: usize,
    ) -> Result<Block<B>, ModelError> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let (width, queries) = (config.width, config.heads * config.head_dim);
        let keys = config.kv_heads * config.head_dim;
        let inner = self
            .gguf
            .tensor(&name("ffn_gate.weight"))?
            .shape
            .get(1)
            .copied()
            .unwrap_or(0);
        let head_norms = match self.optional_vector(&name("attn_q_norm.weight"), config.head_dim)? {
            Some(query) => Some([
                query,
                self.vector(&name("attn_k_norm.weight"), config.head_dim)?,
            ]),
            None => None,
        };
        Ok(Block {
            attention_norm: self.vector(&name("attn_norm.weight"), width)?,
            query: self.linear(&name("attn_q"), queries, width)?,
            key: self.linear(&name("attn_k"), keys, width)?,
            value: self.linear(&name("attn_v"), keys, width)?,
            head_norms,
            attention_out: self.linear(&name("attn_output"), width, queries)?,
            attention_post_norm: self
                .optional_vector(&name("post_attention_norm.weight"), width)?,
            mlp_norm: self.vector(&name("ffn_norm.weight"), width)?,
            mlp: [
                self.matrix(&name("ffn_gate.weight"), inner, width)?,
                self.matrix(&name("ffn_up.weight"), inner, width)?,
                self.matrix(&name("ffn_down.weight"), width, inner)?,
            ],
            mlp_post_norm: self.optional_vector(&name("post_ffw_norm.weight"), width)?,
        })
    }

    /// Frequencies of a head, divided by the file's own factors where it brings some (llama 3.1 and later).
    fn frequencies(&self, config: &ModelConfig, rope: RopeConfig) -> Result<Vec<f32>, ModelError> {
        let half = config.head_dim / 2;
        let mut frequencies = rope.frequencies(config.head_dim);
        if self.gguf.find_tensor("rope_freqs.weight").is_some() {
            let tensor = self.gguf.tensor("rope_freqs.weight")?;
            let bytes = self.gguf.read_tensor(tensor)?;
            let factors: Vec<f32> = bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b))
                .collect();
            if factors.len() != half || factors.iter().any(|factor| !factor.is_normal()) {
                return Err(ModelError::Inconsistent(format!(
                    "`rope_freqs.weight` is no list of {half} factors"
                )));
            }
            frequencies
                .iter_mut()
                .zip(factors)
                .for_each(|(frequency, factor)| *frequency /= factor);
        }
        Ok(frequencies)
    }
}

impl<B: Backend> Weights<B> {
    /// Loads every tensor; `positions` is how far the rotary table reaches.
    pub(super) fn load(
        backend: &B,
        gguf: &Gguf,
        config: &ModelConfig,
        positions: usize,
        progress: impl FnMut(u64),
    ) -> Result<Self, ModelError> {
        let mut loader = Loader {
            backend,
            gguf,
            progress,
        };
        let local = config.sliding.map_or(config.rope, |sliding| sliding.rope);
        let rope = |rope| {
            backend
                .rope(&loader.frequencies(config, rope)?, positions)
                .map_err(ModelError::from)
        };
        let ropes = [rope(config.rope)?, rope(local)?];
        Ok(Self {
            embedding: loader.matrix("token_embd.weight", config.vocabulary, config.width)?,
            blocks: (0..config.layers)
                .map(|layer| loader.block(config, layer))
                .collect::<Result<_, _>>()?,
            output_norm: loader.vector("output_norm.weight", config.width)?,
            head: match gguf.find_tensor("output.weight").is_some() {
                true => Some(loader.matrix("output.weight", config.vocabulary, config.width)?),
                false => None,
            },
            ropes,
        })
    }
}
