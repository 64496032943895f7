//! The decoder, written once over the backend seam.

use super::layer::Layer;
use super::weights::Weights;
use super::{LanguageModel, ModelConfig, ModelError, Row, Slot};
use crate::TokenId;
use crate::backend::{Backend, Logits, Norm, RowPlan};
use crate::gguf::Gguf;

/// A model on a backend, with the caches of its sequences.
pub struct Decoder<B: Backend> {
    backend: B,
    config: ModelConfig,
    weights: Weights<B>,
    context_length: usize,
    slots: Vec<Option<Cached<B>>>,
    step: Step<B>,
}

/// What one forward works on; its memory is kept for the next.
struct Step<B: Backend> {
    tokens: Vec<TokenId>,
    plan: RowPlan,
    /// The slot of each group, and its cache while the forward runs.
    slots: Vec<Slot>,
    caches: Vec<B::Cache>,
    logits: Logits,
}

/// One sequence's cache and how much of it is meant.
struct Cached<B: Backend> {
    cache: B::Cache,
    len: usize,
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
            config,
            weights,
            context_length,
            slots: Vec::new(),
            step: Step {
                tokens: Vec::new(),
                plan: RowPlan::default(),
                slots: Vec::new(),
                caches: Vec::new(),
                logits: Logits::default(),
            },
        })
    }

    fn slot(&self, slot: Slot) -> &Cached<B> {
        self.slots[slot.0]
            .as_ref()
            .expect("a slot is used between open and close")
    }

    fn slot_mut(&mut self, slot: Slot) -> &mut Cached<B> {
        self.slots[slot.0]
            .as_mut()
            .expect("a slot is used between open and close")
    }

    fn insert(&mut self, cached: Cached<B>) -> Slot {
        let index = self
            .slots
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
        self.slots[index] = Some(cached);
        Slot(index)
    }

    /// Groups the rows by slot and checks them against vocabulary and context.
    fn plan(&mut self, rows: &[Row]) -> Result<(), ModelError> {
        let Step {
            tokens,
            plan,
            slots,
            ..
        } = &mut self.step;
        tokens.clear();
        plan.clear();
        slots.clear();
        for group in rows.chunk_by(|a, b| a.slot == b.slot) {
            let slot = group[0].slot;
            let cached = self.slots[slot.0].as_ref();
            let base = cached.expect("a slot is used between open and close").len;
            plan.push_group(base, group.iter().map(|row| row.parent));
            slots.push(slot);
            if base + group.len() > self.context_length {
                return Err(ModelError::ContextOverflow {
                    position: self.context_length,
                    context_length: self.context_length,
                });
            }
        }
        tokens.extend(rows.iter().map(|row| row.token));
        let vocabulary = self.config.vocabulary;
        match tokens.iter().find(|token| **token as usize >= vocabulary) {
            Some(token) => Err(ModelError::TokenOutOfVocabulary {
                token: *token,
                vocabulary,
            }),
            None => Ok(()),
        }
    }

    /// Computes what was planned.
    fn run(&mut self, want: &[usize]) -> Result<(), ModelError> {
        let Self {
            backend,
            weights,
            config,
            step,
            ..
        } = self;
        for (cache, group) in step.caches.iter_mut().zip(&step.plan.groups) {
            backend.reserve(cache, group.base + group.len())?;
        }
        let scale = config.embedding_scale;
        let mut x = backend.embed(&weights.embedding, &step.tokens, scale)?;
        for (layer, block) in weights.blocks.iter().enumerate() {
            let layer = Layer {
                backend: &*backend,
                config: &*config,
                block,
                rope: &weights.ropes[usize::from(config.window(layer).is_some())],
                layer,
            };
            layer.run(&mut x, &step.plan, &mut step.caches)?;
        }
        let norm = Norm {
            weight: &weights.output_norm,
            eps: config.norm_eps,
        };
        let head = weights.head.as_ref().unwrap_or(&weights.embedding);
        Ok(backend.logits(x, norm, want, head, &mut step.logits)?)
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
        Ok(self.insert(Cached { cache, len: 0 }))
    }

    fn fork(&mut self, slot: Slot, positions: usize) -> Result<Slot, ModelError> {
        let source = self.slot(slot);
        let len = positions.min(source.len);
        let cache = self.backend.fork(&source.cache, len)?;
        Ok(self.insert(Cached { cache, len }))
    }

    fn close(&mut self, slot: Slot) {
        self.slots[slot.0] = None;
    }

    fn cached(&self, slot: Slot) -> usize {
        self.slot(slot).len
    }

    fn truncate(&mut self, slot: Slot, positions: usize) {
        let cached = self.slot_mut(slot);
        cached.len = cached.len.min(positions);
    }

    fn keep(&mut self, slot: Slot, from: usize, offsets: &[usize]) -> Result<(), ModelError> {
        let cached = self.slots[slot.0]
            .as_mut()
            .expect("a slot is used between open and close");
        self.backend.keep(&mut cached.cache, from, offsets)?;
        cached.len = from + offsets.len();
        Ok(())
    }

    fn cache_bytes(&self) -> u64 {
        self.slots
            .iter()
            .flatten()
            .map(|cached| self.backend.cache_bytes(&cached.cache))
            .sum()
    }

    fn cache_bytes_per_position(&self) -> u64 {
        self.backend
            .cache_bytes_per_position(self.config.cache_shape())
    }

    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError> {
        self.plan(rows)?;
        // Taken out so that several can be borrowed at once; put back whatever happens.
        for slot in &self.step.slots {
            let cached = self.slots[slot.0].take();
            let cached = cached.expect("rows of one slot are contiguous");
            self.step.caches.push(cached.cache);
        }
        let result = self.run(want);
        let Step {
            plan,
            slots,
            caches,
            logits,
            ..
        } = &mut self.step;
        for ((slot, cache), group) in slots.iter().zip(caches.drain(..)).zip(&plan.groups) {
            let len = group.base + if result.is_ok() { group.len() } else { 0 };
            self.slots[slot.0] = Some(Cached { cache, len });
        }
        result.map(|()| &*logits)
    }
}
