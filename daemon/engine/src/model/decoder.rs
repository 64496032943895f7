//! The decoder, written once over the backend seam.

use super::weights::{Block, Linear, Weights};
use super::{LanguageModel, ModelConfig, ModelError, Row, Slot};
use crate::backend::{AttentionParams, Backend, Logits, RowPlan};
use crate::gguf::Gguf;

/// A model on a backend, with the caches of its sequences.
pub struct Decoder<B: Backend> {
    backend: B,
    config: ModelConfig,
    weights: Weights<B>,
    context_length: usize,
    slots: Vec<Option<Cached<B>>>,
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
    fn plan(&self, rows: &[Row]) -> Result<(RowPlan, Vec<Slot>), ModelError> {
        let (mut plan, mut slots) = (RowPlan::default(), Vec::new());
        for group in rows.chunk_by(|a, b| a.slot == b.slot) {
            let slot = group[0].slot;
            let base = self.slot(slot).len;
            let parents: Vec<Option<usize>> = group.iter().map(|row| row.parent).collect();
            plan.push_group(base, &parents);
            slots.push(slot);
            let end = base + group.len();
            if end > self.context_length {
                return Err(ModelError::ContextOverflow {
                    position: self.context_length,
                    context_length: self.context_length,
                });
            }
        }
        let vocabulary = self.config.vocabulary;
        match rows.iter().find(|row| row.token as usize >= vocabulary) {
            Some(row) => Err(ModelError::TokenOutOfVocabulary {
                token: row.token,
                vocabulary,
            }),
            None => Ok((plan, slots)),
        }
    }

    /// Runs one block on the residual stream.
    fn block(
        &self,
        layer: usize,
        block: &Block<B>,
        x: &mut B::Hidden,
        plan: &RowPlan,
        caches: &mut [&mut B::Cache],
    ) -> Result<(), ModelError> {
        let (backend, config) = (&self.backend, &self.config);
        let norm = |x: &B::Hidden, weight: &B::Vector| backend.rms_norm(x, weight, config.norm_eps);
        let post = |x: B::Hidden, weight: &Option<B::Vector>| match weight {
            Some(weight) => norm(&x, weight),
            None => Ok(x),
        };
        let normed = norm(x, &block.attention_norm)?;
        let maps = [&block.query, &block.key, &block.value].map(Linear::map);
        let [mut query, mut key, value] = backend.linear(&normed, maps)?;
        if let Some([query_norm, key_norm]) = &block.head_norms {
            query = norm(&query, query_norm)?;
            key = norm(&key, key_norm)?;
        }
        let window = config.window(layer);
        let params = AttentionParams {
            layer,
            heads: config.heads,
            scale: (config.head_dim as f32).sqrt().recip(),
            window: window.map(|sliding| sliding.window),
            rope: &self.weights.ropes[usize::from(window.is_some())],
            rope_style: config.rope_style,
        };
        let attended = backend.attention(&params, [query, key, value], plan, caches)?;
        let [attended] = backend.linear(&attended, [block.attention_out.map()])?;
        backend.add(x, &post(attended, &block.attention_post_norm)?)?;
        let normed = norm(x, &block.mlp_norm)?;
        let [gate, up, down] = &block.mlp;
        let mlp = backend.gated_mlp(&normed, [gate, up, down], config.activation)?;
        backend.add(x, &post(mlp, &block.mlp_post_norm)?)?;
        Ok(())
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

    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<Logits, ModelError> {
        let (plan, slots) = self.plan(rows)?;
        // Taken out so that several can be borrowed at once; put back whatever happens.
        let mut taken: Vec<Cached<B>> = slots
            .iter()
            .map(|slot| {
                self.slots[slot.0]
                    .take()
                    .expect("rows of one slot are contiguous")
            })
            .collect();
        let result = self.run(rows, want, &plan, &mut taken);
        for ((slot, mut cached), group) in slots.into_iter().zip(taken).zip(&plan.groups) {
            if result.is_ok() {
                cached.len = group.base + group.len();
            }
            self.slots[slot.0] = Some(cached);
        }
        result
    }
}

impl<B: Backend> Decoder<B> {
    fn run(
        &self,
        rows: &[Row],
        want: &[usize],
        plan: &RowPlan,
        taken: &mut [Cached<B>],
    ) -> Result<Logits, ModelError> {
        for (cached, group) in taken.iter_mut().zip(&plan.groups) {
            self.backend
                .reserve(&mut cached.cache, group.base + group.len())?;
        }
        let mut caches: Vec<&mut B::Cache> =
            taken.iter_mut().map(|cached| &mut cached.cache).collect();
        let tokens: Vec<_> = rows.iter().map(|row| row.token).collect();
        let mut x = self.backend.embed(
            &self.weights.embedding,
            &tokens,
            self.config.embedding_scale,
        )?;
        for (layer, block) in self.weights.blocks.iter().enumerate() {
            self.block(layer, block, &mut x, plan, &mut caches)?;
        }
        if want.is_empty() {
            return Ok(Logits::new(Vec::new(), self.config.vocabulary));
        }
        let normed = self
            .backend
            .rms_norm(&x, &self.weights.output_norm, self.config.norm_eps)?;
        let head = self
            .weights
            .head
            .as_ref()
            .unwrap_or(&self.weights.embedding);
        Ok(self.backend.logits(&normed, want, head)?)
    }
}
