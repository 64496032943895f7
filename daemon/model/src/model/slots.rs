//! The caches of sequences, and the open trees that hang under what they hold for good.

use super::{Exit, Row, Slot};
use crate::TokenId;
use crate::backend::{Backend, BackendError, Group};

/// One sequence's caches.
pub(super) struct Cached<B: Backend> {
    pub(super) cache: B::Cache,
    /// The exit adapter's, where the model has one: of the same positions.
    pub(super) exit: Option<B::Cache>,
    pub(super) held: Held<B>,
}

/// How much of the caches is meant.
pub(super) struct Held<B: Backend> {
    /// Positions held for good.
    pub(super) len: usize,
    /// What later calls may build on, stored behind these positions.
    pub(super) tree: Tree<B>,
}

/// Rows behind the positions that are held for good.
pub(super) struct Tree<B: Backend> {
    tokens: Vec<TokenId>,
    pub(super) parents: Vec<Option<usize>>,
    /// Where its rows left the model; `None`: they ran through all layers.
    exit: Option<Exit>,
    /// The rows' residual streams at the exit.
    streams: Option<B::Hidden>,
}

impl<B: Backend> Tree<B> {
    pub(super) fn empty() -> Self {
        Self {
            tokens: Vec::new(),
            parents: Vec::new(),
            exit: None,
            streams: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Where its rows left the model.
    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Forgets all rows.
    pub(super) fn close(&mut self, backend: &B) {
        self.tokens.clear();
        self.parents.clear();
        if let Some(streams) = self.streams.take() {
            backend.release(streams);
        }
    }

    /// Sees to it that rows which leave at `exit` can be added: rows of another kind go.
    pub(super) fn turn_to(&mut self, exit: Option<Exit>, backend: &B) {
        if self.exit != exit {
            self.close(backend);
            self.exit = exit;
        }
    }

    /// Takes the residual streams of a group's rows, which may yet fail to be added.
    pub(super) fn take_streams(
        &mut self,
        backend: &B,
        x: &B::Hidden,
        group: &Group,
    ) -> Result<(), BackendError> {
        let kept = self.streams.take();
        let old = kept
            .iter()
            .flat_map(|kept| (0..group.first).map(move |row| (kept, row)));
        let new = group.rows.clone().map(|row| (x, row));
        let all = backend.gather(group.first + group.len(), old.chain(new));
        if let Some(kept) = kept {
            backend.release(kept);
        }
        if all.is_err() {
            self.close(backend);
        }
        self.streams = Some(all?);
        Ok(())
    }

    /// Adds rows that were run.
    pub(super) fn extend(&mut self, rows: &[Row]) {
        self.tokens.extend(rows.iter().map(|row| row.token));
        self.parents.extend(rows.iter().map(|row| row.parent));
    }

    /// Adds rows of which each follows the one before.
    pub(super) fn branch(&mut self, tokens: &[TokenId]) {
        self.tokens.extend_from_slice(tokens);
        let parents = (0..tokens.len()).map(|row| row.checked_sub(1));
        self.parents.extend(parents);
    }

    /// How many of the leading rows are the tree's own and can go on from its residual streams.
    pub(super) fn resumable(&self, rows: &[Row]) -> usize {
        if self.streams.is_none() {
            return 0;
        }
        let own = self.tokens.iter().zip(&self.parents);
        rows.iter()
            .zip(own)
            .take_while(|(row, (token, parent))| (row.token, row.parent) == (**token, **parent))
            .count()
    }

    /// The residual streams, where the tree left early.
    pub(super) fn streams(&self) -> Option<&B::Hidden> {
        self.streams.as_ref()
    }
}

/// All sequences' caches.
pub(super) struct Slots<B: Backend>(Vec<Option<Cached<B>>>);

const OPEN: &str = "a slot is used between open and close, and its rows are contiguous";

impl<B: Backend> Slots<B> {
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    pub(super) fn insert(&mut self, cached: Cached<B>) -> Slot {
        let free = self.0.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[index] = Some(cached);
        Slot(index)
    }

    pub(super) fn get(&self, slot: Slot) -> &Cached<B> {
        self.0[slot.0].as_ref().expect(OPEN)
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Cached<B> {
        self.0[slot.0].as_mut().expect(OPEN)
    }

    /// Takes a sequence out, to be put back or to be dropped.
    pub(super) fn take(&mut self, slot: Slot) -> Cached<B> {
        self.0[slot.0].take().expect(OPEN)
    }

    pub(super) fn put_back(&mut self, slot: Slot, cached: Cached<B>) {
        self.0[slot.0] = Some(cached);
    }

    pub(super) fn close(&mut self, slot: Slot) -> Option<Cached<B>> {
        self.0[slot.0].take()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cached<B>> {
        self.0.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cached<B>> {
        self.0.iter_mut().flatten()
    }
}
