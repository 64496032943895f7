//! Chains of drafted tokens in the making, whatever model gives their distributions.

use std::sync::Arc;

use super::DraftRequest;
use crate::TokenId;
use crate::model::Slot;
use crate::sampling::Distribution;
use crate::verify::Draft;

/// One sequence's chain during one call.
pub(super) struct Chain {
    /// Index of its request.
    pub(super) request: usize,
    /// Where its tokens are fed.
    pub(super) slot: Slot,
    /// Rows fed during this call that its next one follows.
    pub(super) fed: usize,
    tokens: Vec<TokenId>,
    probs: Vec<Arc<Distribution>>,
}

/// What chains are drawn from, vocabulary-wide; used again once no draft holds it.
#[derive(Debug, Default)]
pub(super) struct Distributions(Vec<Arc<Distribution>>);

impl Distributions {
    /// Takes a distribution that nobody else holds, or makes one.
    fn unused(&mut self) -> Arc<Distribution> {
        let free = |distribution: &mut Arc<Distribution>| Arc::get_mut(distribution).is_some();
        match self.0.iter_mut().position(free) {
            Some(index) => self.0.swap_remove(index),
            None => Arc::new(Distribution::one_hot(0)),
        }
    }
}

impl Chain {
    pub(super) fn new(request: usize, slot: Slot, fed: usize) -> Self {
        Self {
            request,
            slot,
            fed,
            tokens: Vec::new(),
            probs: Vec::new(),
        }
    }

    /// Draws the next token.
    pub(super) fn draw(
        &mut self,
        requests: &mut [DraftRequest<'_>],
        logits: &[f32],
        distributions: &mut Distributions,
    ) {
        let request = &mut requests[self.request];
        let mut drawn_from = distributions.unused();
        if let Some(distribution) = Arc::get_mut(&mut drawn_from) {
            let sampler = &request.sampler;
            sampler.distribution_into(logits, &self.tokens, distribution);
        }
        let position = request.tokens.len() + self.tokens.len();
        let token = request.sampler.draw(&drawn_from, position);
        self.tokens.push(token);
        self.probs.push(drawn_from);
    }

    /// Whether its request wants another token.
    pub(super) fn goes_on(&self, requests: &[DraftRequest<'_>]) -> bool {
        self.tokens.len() < requests[self.request].max_len
    }

    /// The token drawn last, as a list.
    pub(super) fn last(&self) -> &[TokenId] {
        &self.tokens[self.tokens.len() - 1..]
    }
}

/// The drafts of `count` requests.
pub(super) fn drafts(
    count: usize,
    chains: Vec<Chain>,
    distributions: &mut Distributions,
) -> Vec<Draft> {
    let mut drafts = vec![Draft::default(); count];
    for chain in chains {
        distributions.0.extend(chain.probs.iter().cloned());
        drafts[chain.request] = Draft::drawn_chain(chain.tokens.into_iter().zip(chain.probs));
    }
    drafts
}
