//! The parts of a model that rows pass, one after another.

use std::ops::Range;

use super::exit::Adapter;
use super::layer::Layer;
use super::weights::Weights;
use super::{Exit, ModelConfig, ModelError};
use crate::TokenId;
use crate::backend::{Backend, Norm, RowPlan};

/// What a pass reads.
pub(super) struct Model<'a, B: Backend> {
    pub(super) backend: &'a B,
    pub(super) config: &'a ModelConfig,
    pub(super) weights: &'a Weights<B>,
    pub(super) adapter: Option<&'a Adapter<B>>,
    pub(super) context_length: usize,
}

impl<'a, B: Backend> Model<'a, B> {
    /// Layers before an exit that was checked.
    pub(super) fn layers_before(&self, exit: Exit) -> usize {
        match exit {
            Exit::Adapter => self.adapter.map_or(0, |adapter| adapter.config.layers),
            Exit::Layer(layers) => layers,
        }
    }

    pub(super) fn output_norm(&self) -> Norm<'a, B> {
        Norm {
            weight: &self.weights.output_norm,
            eps: self.config.norm_eps,
        }
    }

    pub(super) fn embed(&self, tokens: &[TokenId]) -> Result<B::Hidden, ModelError> {
        let (table, scale) = (&self.weights.embedding, self.config.embedding_scale);
        Ok(self.backend.embed(table, tokens, scale)?)
    }

    pub(super) fn adapter_layer(&self, adapter: &'a Adapter<B>) -> Layer<'a, B> {
        Layer {
            backend: self.backend,
            config: &adapter.config.block,
            block: &adapter.block,
            rope: &self.weights.ropes[0],
            layer: 0,
        }
    }

    /// Runs some of the layers. Rows that come to where the exit adapter takes over leave it their keys and values.
    pub(super) fn run(
        &self,
        x: &mut B::Hidden,
        layers: Range<usize>,
        plan: &RowPlan,
        [caches, exit_caches]: [&mut [B::Cache]; 2],
    ) -> Result<(), ModelError> {
        for layer in layers {
            if let Some(adapter) = self
                .adapter
                .filter(|adapter| adapter.config.layers == layer)
            {
                self.adapter_layer(adapter).remember(x, plan, exit_caches)?;
            }
            let layer = Layer {
                backend: self.backend,
                config: self.config,
                block: &self.weights.blocks[layer],
                rope: &self.weights.ropes[usize::from(self.config.window(layer).is_some())],
                layer,
            };
            layer.run(x, plan, caches)?;
        }
        Ok(())
    }
}
