//! A distribution over the vocabulary, as weights and their sum.

use tandem_model::TokenId;
use tandem_model::math;

/// A distribution over the vocabulary after all transforms; probabilities sum to 1.
///
/// Kept as unnormalised weights and their 64-bit sum: one pass fewer over the vocabulary, and no rounding between what is
/// drawn and what is verified.
///
/// # Invariants
/// `total` is the sum of `weights`, finite and above 0; every weight is finite and at least 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Token of each weight, ascending; empty when weight `i` is that of token `i`.
    pub(super) ids: Vec<TokenId>,
    pub(super) weights: Vec<f32>,
    pub(super) total: f64,
}

impl Distribution {
    /// All mass on one token.
    #[must_use]
    pub fn one_hot(token: TokenId) -> Self {
        Self {
            ids: vec![token],
            weights: vec![1.0],
            total: 1.0,
        }
    }

    /// Proportional to `weights`, indexed by token id; `None` unless all are finite, none negative and one positive.
    #[must_use]
    pub fn from_weights(weights: Vec<f32>) -> Option<Self> {
        let valid = weights
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0);
        let total = math::sum(&weights);
        (valid && total > 0.0).then_some(Self {
            ids: Vec::new(),
            weights,
            total,
        })
    }

    /// Probability of `token`; 0 outside the support and the vocabulary.
    #[must_use]
    pub fn prob(&self, token: TokenId) -> f32 {
        (self.weight(token) / self.total) as f32
    }

    /// Tokens of positive probability with it, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = (TokenId, f32)> + '_ {
        let support = self
            .weights
            .iter()
            .enumerate()
            .filter(|(_, weight)| **weight > 0.0);
        support.map(|(index, weight)| (self.token(index), (f64::from(*weight) / self.total) as f32))
    }

    /// The only token of a distribution that leaves no choice.
    #[must_use]
    pub fn certain(&self) -> Option<TokenId> {
        (self.weights.len() == 1).then(|| self.token(0))
    }

    /// The token of the largest weight, of several the first.
    #[must_use]
    pub(crate) fn likeliest(&self) -> TokenId {
        let mut best = 0;
        for (index, weight) in self.weights.iter().enumerate() {
            if *weight > self.weights[best] {
                best = index;
            }
        }
        self.token(best)
    }

    pub(super) fn set_one_hot(&mut self, token: TokenId) {
        self.ids.clear();
        self.ids.push(token);
        self.weights.clear();
        self.weights.push(1.0);
        self.total = 1.0;
    }

    /// Unnormalised weights; see [`Self::token`] for whose.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Sum of the weights.
    pub(crate) fn total(&self) -> f64 {
        self.total
    }

    /// Whether weight `i` is that of token `i`.
    pub(crate) fn is_dense(&self) -> bool {
        self.ids.is_empty()
    }

    /// Token of each weight; empty when dense.
    pub(super) fn tokens(&self) -> &[TokenId] {
        &self.ids
    }

    /// Token of weight `index`.
    pub(crate) fn token(&self, index: usize) -> TokenId {
        // A vocabulary is indexed by `TokenId`, so its indexes fit.
        if self.is_dense() {
            index as TokenId
        } else {
            self.ids[index]
        }
    }

    /// Where the weight of `token` is kept.
    pub(crate) fn index(&self, token: TokenId) -> Option<usize> {
        if self.is_dense() {
            let index = token as usize;
            (index < self.weights.len()).then_some(index)
        } else {
            self.ids.binary_search(&token).ok()
        }
    }

    /// Unnormalised weight of `token`.
    pub(crate) fn weight(&self, token: TokenId) -> f64 {
        self.index(token)
            .map_or(0.0, |index| f64::from(self.weights[index]))
    }

    /// Sum of the weights of all tokens but `removed`, added up anew: a difference would lose the digits of a small rest.
    pub(crate) fn total_without(&self, removed: &[TokenId]) -> f64 {
        let mut holes: Vec<usize> = removed
            .iter()
            .filter_map(|&token| self.index(token))
            .collect();
        holes.sort_unstable();
        holes.dedup();
        let (mut from, mut total) = (0, 0.0);
        for hole in holes {
            total += math::sum(&self.weights[from..hole]);
            from = hole + 1;
        }
        total + math::sum(&self.weights[from..])
    }
}
