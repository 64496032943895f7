//! The decoder, written once over the backend seam.

use super::exit::{Adapter, WeightBytes, check_layers};
use super::parts::Model;
use super::pass::{Fate, Step};
use super::slots::{Cached, Held, Slots, Tree};
use super::weights::Weights;
use super::{Exit, ExitAdapterInfo, LanguageModel, ModelConfig, ModelError, Row, Slot};
use crate::TokenId;
use crate::backend::{Backend, Logits};
use crate::gguf::Gguf;

/// A model on a backend, with the caches of its sequences.
pub struct Decoder<B: Backend> {
    backend: B,
    config: ModelConfig,
    weights: Weights<B>,
    weight_bytes: WeightBytes,
    adapter: Option<Adapter<B>>,
    context_length: usize,
    slots: Slots<B>,
    step: Step<B>,
}

impl<B: Backend> std::fmt::Debug for Decoder<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> Decoder<B> {
    /// Loads the weights; the caches will hold at most `context_length` positions. `progress` is told the bytes of
    /// each tensor as it is read.
    ///
    /// # Errors
    /// A damaged, inconsistent or unsupported file; a device that is out of memory.
    pub fn load(
        backend: B,
        gguf: &Gguf,
        context_length: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ModelError> {
        let config = ModelConfig::from_gguf(gguf)?;
        let weights = Weights::load(&backend, gguf, &config, context_length, progress)?;
        Ok(Self {
            backend,
            weight_bytes: WeightBytes::of(gguf, config.layers),
            config,
            weights,
            adapter: None,
            context_length,
            slots: Slots::none(),
            step: Step::new(),
        })
    }

    /// What the last pass did.
    #[cfg(test)]
    pub(super) fn step(&self) -> &Step<B> {
        &self.step
    }

    fn pass(&mut self, rows: &[Row], want: &[usize], fate: Fate) -> Result<&Logits, ModelError> {
        if rows.is_empty() {
            self.step.logits.reset(0, 0)?;
            return Ok(&self.step.logits);
        }
        let model = Model {
            backend: &self.backend,
            config: &self.config,
            weights: &self.weights,
            adapter: self.adapter.as_ref(),
            context_length: self.context_length,
        };
        let (step, slots) = (&mut self.step, &mut self.slots);
        step.begin(&model, slots, rows, fate)?;
        let result = step.run(&model, want, fate);
        step.end(model.backend, slots, rows, (fate, result.is_ok()));
        result.map(|()| &self.step.logits)
    }

    fn check_exit(&self, exit: Exit) -> Result<(), ModelError> {
        match (exit, &self.adapter) {
            (Exit::Adapter, None) => Err(ModelError::NoExitAdapter),
            (Exit::Adapter, Some(_)) => Ok(()),
            (Exit::Layer(layers), _) => check_layers(layers, self.config.layers),
        }
    }

    /// An empty cache of the exit adapter, where there is one.
    fn exit_cache(&self) -> Result<Option<B::Cache>, ModelError> {
        let shape = self
            .adapter
            .as_ref()
            .map(|adapter| adapter.config.block.cache_shape());
        Ok(shape.map(|shape| self.backend.cache(shape)).transpose()?)
    }

    fn insert(&mut self, cache: B::Cache, exit: Option<B::Cache>, len: usize) -> Slot {
        let tree = Tree::empty();
        let held = Held { len, tree };
        self.slots.insert(Cached { cache, exit, held })
    }
}

impl<B: Backend> LanguageModel for Decoder<B> {
    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn backend(&self) -> &'static str {
        self.backend.name()
    }

    fn batch_invariant(&self) -> bool {
        self.backend.batch_invariant()
    }

    fn open(&mut self) -> Result<Slot, ModelError> {
        let cache = self.backend.cache(self.config.cache_shape())?;
        let exit = self.exit_cache()?;
        Ok(self.insert(cache, exit, 0))
    }

    fn fork(&mut self, slot: Slot, positions: usize) -> Result<Slot, ModelError> {
        let source = self.slots.get(slot);
        let len = positions.min(source.held.len);
        let cache = self.backend.fork(&source.cache, len)?;
        let exit = source.exit.as_ref();
        let exit = exit.map(|exit| self.backend.fork(exit, len)).transpose()?;
        Ok(self.insert(cache, exit, len))
    }

    fn close(&mut self, slot: Slot) {
        if let Some(mut cached) = self.slots.close(slot) {
            cached.held.tree.close(&self.backend);
        }
    }

    fn cached(&self, slot: Slot) -> usize {
        self.slots.get(slot).held.len
    }

    fn truncate(&mut self, slot: Slot, positions: usize) {
        let held = &mut self.slots.get_mut(slot).held;
        held.len = held.len.min(positions);
        held.tree.close(&self.backend);
    }

    fn keep(&mut self, slot: Slot, from: usize, offsets: &[usize]) -> Result<(), ModelError> {
        let cached = self.slots.get_mut(slot);
        let rows = match cached.held.tree.exit() {
            None => cached.held.tree.len(),
            Some(_) => 0,
        };
        let stored = cached.held.len + rows;
        let kept = offsets.iter().take_while(|offset| from + **offset < stored);
        let offsets = &offsets[..kept.count()];
        for cache in std::iter::once(&mut cached.cache).chain(&mut cached.exit) {
            self.backend.keep(cache, from, offsets)?;
        }
        cached.held.len = from.min(stored) + offsets.len();
        cached.held.tree.close(&self.backend);
        Ok(())
    }

    fn reopen(&mut self, slot: Slot, tokens: &[TokenId]) {
        let held = &mut self.slots.get_mut(slot).held;
        held.len -= tokens.len().min(held.len);
        held.tree.turn_to(None, &self.backend);
        held.tree.close(&self.backend);
        held.tree.branch(tokens);
    }

    fn alone(&mut self, alone: bool) {
        self.backend.alone(alone);
    }

    fn rehearsing(&mut self, on: bool) {
        self.backend.rehearsing(on);
    }

    fn preparations(&self) -> u64 {
        self.backend.preparations()
    }

    fn cache_bytes(&self) -> u64 {
        let caches = self.slots.iter().map(|cached| &cached.cache);
        caches.map(|cache| self.backend.cache_bytes(cache)).sum()
    }

    fn cache_bytes_per_position(&self) -> u64 {
        self.backend
            .cache_bytes_per_position(self.config.cache_shape())
    }

    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError> {
        self.pass(rows, want, Fate::Commit)
    }

    fn grow(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError> {
        self.pass(rows, want, Fate::Join(None))
    }

    fn early(&mut self, rows: &[Row], want: &[usize], exit: Exit) -> Result<&Logits, ModelError> {
        self.check_exit(exit)?;
        self.pass(rows, want, Fate::Join(Some(exit)))
    }

    fn exit_cost(&self, exit: Exit) -> Result<f64, ModelError> {
        self.check_exit(exit)?;
        Ok(match (exit, &self.adapter) {
            (Exit::Adapter, Some(adapter)) => self
                .weight_bytes
                .share(adapter.config.layers, adapter.weight_bytes),
            (Exit::Layer(layers), _) => self.weight_bytes.share(layers, 0),
            (Exit::Adapter, None) => return Err(ModelError::NoExitAdapter),
        })
    }

    fn attach_exit(
        &mut self,
        gguf: &Gguf,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ModelError> {
        assert!(
            self.slots.iter().next().is_none(),
            "an adapter is loaded before a slot is opened"
        );
        self.adapter = Some(Adapter::load(&self.backend, gguf, &self.config, progress)?);
        Ok(())
    }

    fn detach_exit(&mut self) {
        self.adapter = None;
        for cached in self.slots.iter_mut() {
            cached.exit = None;
            if cached.held.tree.exit().is_some() {
                cached.held.tree.close(&self.backend);
            }
        }
    }

    fn exit_adapter(&self) -> Option<ExitAdapterInfo> {
        let adapter = self.adapter.as_ref()?;
        let caches = self.slots.iter().filter_map(|cached| cached.exit.as_ref());
        let shape = adapter.config.block.cache_shape();
        Some(ExitAdapterInfo {
            layers: adapter.config.layers,
            weight_bytes: adapter.weight_bytes,
            cache_bytes: caches.map(|cache| self.backend.cache_bytes(cache)).sum(),
            cache_bytes_per_position: self.backend.cache_bytes_per_position(shape),
        })
    }
}
