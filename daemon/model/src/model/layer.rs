//! One layer of the decoder: attention and gated MLP on the residual stream.

use super::weights::{Block, Linear};
use super::{ModelConfig, ModelError};
use crate::backend::{AttentionParams, Backend, Input, Norm, RowPlan};

/// One block of the decoder at its place.
pub(super) struct Layer<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) config: &'a ModelConfig,
    pub(super) block: &'a Block<B>,
    pub(super) rope: &'a B::Rope,
    /// Its number.
    pub(super) layer: usize,
}

impl<'a, B: Backend> Layer<'a, B> {
    fn norm(&self, weight: &'a B::Vector) -> Norm<'a, B> {
        Norm {
            weight,
            eps: self.config.norm_eps,
        }
    }

    /// Runs the block on the residual stream.
    pub(super) fn run(
        &self,
        x: &mut B::Hidden,
        plan: &RowPlan,
        caches: &mut [B::Cache],
    ) -> Result<(), ModelError> {
        let Self {
            backend,
            config,
            block,
            ..
        } = self;
        let post = |weight: &'a Option<B::Vector>| weight.as_ref().map(|weight| self.norm(weight));
        let normed = Input::Normed(x, self.norm(&block.attention_norm));
        let maps = [&block.query, &block.key, &block.value].map(Linear::map);
        let qkv = backend.linear(normed, maps)?;
        let params = self.attention();
        let attended = backend.attention(&params, qkv, plan, caches)?;
        let [attended] = backend.linear(Input::Rows(attended), [block.attention_out.map()])?;
        backend.add(x, attended, post(&block.attention_post_norm))?;
        let normed = Input::Normed(x, self.norm(&block.mlp_norm));
        let mlp = backend.gated_mlp(normed, block.mlp.each_ref(), config.activation)?;
        backend.add(x, mlp, post(&block.mlp_post_norm))?;
        Ok(())
    }

    /// Stores the rows' keys and values, as [`Self::run`] would, and no more.
    pub(super) fn remember(
        &self,
        x: &B::Hidden,
        plan: &RowPlan,
        caches: &mut [B::Cache],
    ) -> Result<(), ModelError> {
        let normed = Input::Normed(x, self.norm(&self.block.attention_norm));
        let maps = [&self.block.key, &self.block.value].map(Linear::map);
        let kv = self.backend.linear(normed, maps)?;
        self.backend.remember(&self.attention(), kv, plan, caches)?;
        Ok(())
    }

    /// How the block attends.
    fn attention(&self) -> AttentionParams<'a, B> {
        let (config, head_norms) = (self.config, self.block.head_norms.as_ref());
        // Of queries and keys alike.
        let magnitude = config.layer_rope(self.layer).magnitude;
        AttentionParams {
            layer: self.layer,
            heads: config.heads,
            scale: config.attention_scale * magnitude * magnitude,
            window: config.window(self.layer).map(|sliding| sliding.window),
            head_norms: head_norms.map(|norms| norms.each_ref().map(|weight| self.norm(weight))),
            rope: self.rope,
            rope_style: config.rope_style,
        }
    }
}
