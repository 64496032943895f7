//! What a draft model's cache was fed of one sequence.

use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, ModelError, Slot};

use crate::sampling::KeptRow;

/// A row of the open tree, and what the model says of the token after it.
#[derive(Debug)]
pub(in crate::draft) struct Foreseen {
    pub(in crate::draft) token: TokenId,
    pub(in crate::draft) row: usize,
    pub(in crate::draft) logits: KeptRow,
}

/// What a sequence's cache was fed.
#[derive(Debug)]
pub(super) struct Fed {
    pub(super) slot: Slot,
    /// Committed tokens.
    pub(super) tokens: Vec<TokenId>,
    /// The rows of the open tree: token, and parent among these.
    pub(super) tree: Vec<(TokenId, Option<usize>)>,
    /// The branch of the tree that was computed ahead: first the token that was expected to be chosen, then what was
    /// expected to be drafted after it.
    pub(super) ahead: Vec<Foreseen>,
}

impl Fed {
    pub(super) fn new(slot: Slot) -> Self {
        Self {
            slot,
            tokens: Vec::new(),
            tree: Vec::new(),
            ahead: Vec::new(),
        }
    }

    /// The rows of the tree that spell the first of `tokens`, as many as there are.
    pub(super) fn descend(&self, tokens: &[TokenId]) -> Vec<usize> {
        let mut path: Vec<usize> = Vec::new();
        for token in tokens {
            let step = (*token, path.last().copied());
            match self.tree.iter().position(|row| *row == step) {
                Some(row) => path.push(row),
                None => break,
            }
        }
        path
    }

    /// How much of `known` the cache holds for good, and the rows of the tree that continue it.
    fn shared(&self, known: &[TokenId]) -> (usize, Vec<usize>) {
        let common = self.tokens.iter().zip(known).take_while(|(a, b)| a == b);
        let common = common.count();
        if common < self.tokens.len() {
            return (common, Vec::new());
        }
        (common, self.descend(&known[common..]))
    }

    /// Where in `ahead` the newest of `tokens` is, if all before it were fed.
    fn place_ahead(
        &self,
        tokens: &[TokenId],
        (common, path): &(usize, Vec<usize>),
    ) -> Option<usize> {
        let (newest, known) = tokens.split_last()?;
        let row = (*newest, path.last().copied());
        let is_it = |foreseen: &Foreseen| self.tree[foreseen.row] == row;
        let whole = common + path.len() == known.len();
        self.ahead.iter().position(is_it).filter(|_| whole)
    }

    /// Whether what follows `tokens`, the committed ones, is known without a forward.
    pub(super) fn foresees(&self, tokens: &[TokenId]) -> bool {
        let known = &tokens[..tokens.len() - 1];
        !self.ahead.is_empty() && self.place_ahead(tokens, &self.shared(known)).is_some()
    }

    /// Brings the cache to what it shares with the committed `tokens`. The newest is left to be fed, for its logits are
    /// what a draft starts from, unless they were computed ahead: then these are returned, and after them those of the
    /// tokens that were expected to be drafted, which are the open tree.
    pub(super) fn align(
        &mut self,
        model: &mut dyn LanguageModel,
        tokens: &[TokenId],
    ) -> Result<Vec<Foreseen>, ModelError> {
        let known = &tokens[..tokens.len() - 1];
        let shared = self.shared(known);
        let place = self.place_ahead(tokens, &shared);
        let (common, mut path) = shared;
        let mut foreseen = place.map_or_else(Vec::new, |place| self.ahead.split_off(place));
        self.ahead.clear();
        let held = common + path.len() + usize::from(!foreseen.is_empty());
        path.extend(foreseen.iter().map(|foreseen| foreseen.row));
        if path.is_empty() {
            model.truncate(self.slot, common);
        } else {
            model.keep(self.slot, common, &path)?;
        }
        self.tokens.truncate(common);
        self.tokens.extend_from_slice(&tokens[common..held]);
        self.tree.clear();
        for (row, foreseen) in foreseen.iter_mut().skip(1).enumerate() {
            foreseen.row = row;
            self.tree.push((foreseen.token, row.checked_sub(1)));
        }
        if !self.tree.is_empty() {
            let branch: Vec<_> = self.tree.iter().map(|(token, _)| *token).collect();
            model.reopen(self.slot, &branch);
        }
        Ok(foreseen)
    }
}
