//! One pass of rows through the model, or through its first layers.

#[cfg(test)]
mod tests;

use super::parts::Model;
use super::slots::{Cached, Held, Slots};
use super::{Exit, ModelError, Row, Slot};
use crate::TokenId;
use crate::backend::{Backend, Logits, Norm, RowPlan};

/// What becomes of the rows of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// They are held for good; the slots' trees close.
    Commit,
    /// They join the slots' trees, and leave the model early where an exit is named.
    Join(Option<Exit>),
}

/// What one pass works on; its memory is kept for the next.
pub(super) struct Step<B: Backend> {
    /// Of the rows that start at the embedding.
    tokens: Vec<TokenId>,
    /// All rows.
    pub(super) plan: RowPlan,
    /// The rows that start at the embedding, where others resume.
    fresh: RowPlan,
    /// Layers that the rows which resume have behind them; 0: none resumes.
    resume: usize,
    /// The slot of each group, and what it has while the pass runs.
    slots: Vec<Slot>,
    caches: Vec<B::Cache>,
    exit_caches: Vec<B::Cache>,
    held: Vec<Held<B>>,
    pub(super) logits: Logits,
}

impl<B: Backend> Step<B> {
    pub(super) fn new() -> Self {
        Self {
            tokens: Vec::new(),
            plan: RowPlan::default(),
            fresh: RowPlan::default(),
            resume: 0,
            slots: Vec::new(),
            caches: Vec::new(),
            exit_caches: Vec::new(),
            held: Vec::new(),
            logits: Logits::default(),
        }
    }

    /// Groups the rows by slot and takes what the slots have. Nothing is taken after an error.
    pub(super) fn begin(
        &mut self,
        model: &Model<'_, B>,
        slots: &mut Slots<B>,
        rows: &[Row],
        fate: Fate,
    ) -> Result<(), ModelError> {
        let vocabulary = model.config.vocabulary;
        if let Some(row) = rows.iter().find(|row| row.token as usize >= vocabulary) {
            return Err(ModelError::TokenOutOfVocabulary {
                token: row.token,
                vocabulary,
            });
        }
        self.tokens.clear();
        self.plan.clear();
        self.fresh.clear();
        self.resume = 0;
        self.slots.clear();
        for group in rows.chunk_by(|a, b| a.slot == b.slot) {
            let slot = group[0].slot;
            self.push(model, &mut slots.get_mut(slot).held, group, fate);
            self.slots.push(slot);
        }
        // Rows of a tree may lie behind the last position: where they lie is not what they mean.
        let last = self.plan.positions.iter().max();
        if last.is_some_and(|position| *position >= model.context_length) {
            return Err(ModelError::ContextOverflow {
                position: model.context_length,
                context_length: model.context_length,
            });
        }
        for slot in &self.slots {
            let cached = slots.take(*slot);
            self.caches.push(cached.cache);
            self.exit_caches.extend(cached.exit);
            self.held.push(cached.held);
        }
        Ok(())
    }

    /// Plans the rows of one slot.
    fn push(&mut self, model: &Model<'_, B>, held: &mut Held<B>, rows: &[Row], fate: Fate) {
        let parents = rows.iter().map(|row| row.parent);
        let mut resumed = 0;
        match fate {
            Fate::Commit => {
                let tree = &held.tree;
                let layers = tree.exit().map_or(0, |exit| model.layers_before(exit));
                resumed = tree.resumable(rows);
                // Trees that left elsewhere than the first are run anew.
                if resumed > 0 && ![0, layers].contains(&self.resume) {
                    resumed = 0;
                } else if resumed > 0 {
                    self.resume = layers;
                }
                self.plan.push_group(held.len, parents.clone());
                self.fresh.push_rest(held.len, parents, resumed);
            }
            Fate::Join(exit) => {
                held.tree.turn_to(exit, model.backend);
                let all = held.tree.parents.iter().copied().chain(parents);
                self.plan.push_rest(held.len, all, held.tree.len());
            }
        }
        self.tokens
            .extend(rows[resumed..].iter().map(|row| row.token));
    }

    /// Computes what was planned.
    pub(super) fn run(
        &mut self,
        model: &Model<'_, B>,
        want: &[usize],
        fate: Fate,
    ) -> Result<(), ModelError> {
        for caches in [&mut self.caches, &mut self.exit_caches] {
            for (cache, group) in caches.iter_mut().zip(&self.plan.groups) {
                model.backend.reserve(cache, group.place(group.len()))?;
            }
        }
        let (x, norm) = match fate {
            Fate::Join(Some(exit)) => self.leave_early(model, exit)?,
            Fate::Join(None) | Fate::Commit => (self.run_whole(model)?, model.output_norm()),
        };
        let head = model
            .weights
            .head
            .as_ref()
            .unwrap_or(&model.weights.embedding);
        Ok(model
            .backend
            .logits(x, norm, want, head, &mut self.logits)?)
    }

    /// Runs all rows through all layers that they have not behind them.
    fn run_whole(&mut self, model: &Model<'_, B>) -> Result<B::Hidden, ModelError> {
        let (backend, layers) = (model.backend, model.config.layers);
        let caches = [&mut self.caches[..], &mut self.exit_caches[..]];
        if self.resume == 0 {
            let mut x = model.embed(&self.tokens)?;
            model.run(&mut x, 0..layers, &self.plan, caches)?;
            return Ok(x);
        }
        let [caches, exit_caches] = caches;
        let mut new = None;
        if !self.tokens.is_empty() {
            let x = new.insert(model.embed(&self.tokens)?);
            model.run(x, 0..self.resume, &self.fresh, [caches, exit_caches])?;
        }
        let streams = self
            .fresh
            .groups
            .iter()
            .zip(&self.held)
            .flat_map(|(rest, held)| {
                let kept = held.tree.streams().into_iter();
                let kept = kept.flat_map(|kept| (0..rest.first).map(move |row| (kept, row)));
                let run = new
                    .iter()
                    .flat_map(|new| rest.rows.clone().map(move |row| (new, row)));
                kept.chain(run)
            });
        let mut x = backend.gather(self.plan.positions.len(), streams)?;
        if let Some(new) = new {
            backend.release(new);
        }
        let caches = [&mut self.caches[..], &mut self.exit_caches[..]];
        model.run(&mut x, self.resume..layers, &self.plan, caches)?;
        Ok(x)
    }

    /// Runs all rows to an exit, where the trees take their residual streams. Returns what the LM head takes, and the
    /// norm before it.
    fn leave_early<'a>(
        &mut self,
        model: &Model<'a, B>,
        exit: Exit,
    ) -> Result<(B::Hidden, Norm<'a, B>), ModelError> {
        let mut x = model.embed(&self.tokens)?;
        let caches = [&mut self.caches[..], &mut self.exit_caches[..]];
        model.run(&mut x, 0..model.layers_before(exit), &self.plan, caches)?;
        for (held, group) in self.held.iter_mut().zip(&self.plan.groups) {
            held.tree.take_streams(model.backend, &x, group)?;
        }
        match (exit, model.adapter) {
            (Exit::Adapter, Some(adapter)) => {
                let block = model.adapter_layer(adapter);
                block.run(&mut x, &self.plan, &mut self.exit_caches)?;
                let norm = Norm {
                    weight: &adapter.norm,
                    eps: adapter.config.block.norm_eps,
                };
                Ok((x, norm))
            }
            _ => Ok((x, model.output_norm())),
        }
    }

    /// Gives back to the slots what they have, the rows included where all went well.
    pub(super) fn end(
        &mut self,
        backend: &B,
        slots: &mut Slots<B>,
        rows: &[Row],
        (fate, well): (Fate, bool),
    ) {
        let mut exits = self.exit_caches.drain(..);
        let having = self.caches.drain(..).zip(self.held.drain(..));
        let groups = self.slots.iter().zip(&self.plan.groups);
        for ((slot, group), (cache, mut held)) in groups.zip(having) {
            match fate {
                Fate::Join(_) if well => held.tree.extend(&rows[group.rows.clone()]),
                Fate::Join(_) => {}
                Fate::Commit => {
                    // Even after an error: the rows may have been stored in the place of the tree's.
                    held.tree.close(backend);
                    held.len += if well { group.len() } else { 0 };
                }
            }
            let exit = exits.next();
            slots.put_back(*slot, Cached { cache, exit, held });
        }
    }
}
