//! Independent random choices, for requests without a seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tandem_model::TokenId;
use tandem_model::math;

use super::Distribution;

/// What rejection sampling asks of randomness. Tests implement it by walking through every outcome.
pub(crate) trait Chance {
    /// True with `probability`; without a draw where that is at least 1, or not above 0.
    fn accept(&mut self, probability: f64) -> bool;

    /// An index in proportion to `weights`, which sum to `total` > 0.
    fn pick<W: Copy + Into<f64>>(&mut self, weights: &[W], total: f64) -> usize;
}

/// The random numbers of one sequence.
#[derive(Debug)]
pub(crate) struct Generator(Box<StdRng>);

impl Generator {
    pub(super) fn new(entropy: u64) -> Self {
        Self(Box::new(StdRng::seed_from_u64(entropy)))
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Chance for Generator {
    fn accept(&mut self, probability: f64) -> bool {
        probability >= 1.0 || (probability > 0.0 && self.uniform() < probability)
    }

    fn pick<W: Copy + Into<f64>>(&mut self, weights: &[W], total: f64) -> usize {
        locate(weights, self.uniform() * total)
    }
}

/// At most `count` different tokens, in the order drawn without replacement.
pub(crate) fn distinct(
    chance: &mut impl Chance,
    distribution: &Distribution,
    count: usize,
) -> Vec<TokenId> {
    let mut weights = distribution.weights().to_vec();
    let mut total = distribution.total();
    let mut tokens = Vec::new();
    while tokens.len() < count && total > 0.0 {
        let index = chance.pick(&weights, total);
        tokens.push(distribution.token(index));
        weights[index] = 0.0;
        total = math::sum(&weights);
    }
    tokens
}

/// Index at which the running sum of `weights` first exceeds `target`; the last positive one where none does.
pub(super) fn locate<W: Copy + Into<f64>>(weights: &[W], target: f64) -> usize {
    /// Summed at once, several additions at a time; then one block is walked.
    const BLOCK: usize = 512;
    let mut before = 0.0;
    for (number, block) in weights.chunks(BLOCK).enumerate() {
        let after = before + math::sum(block);
        if after > target {
            let mut running = before;
            let exceeds = |&weight: &W| {
                running += weight.into();
                weight.into() > 0.0 && running > target
            };
            // The walk adds in another order and may just fail to exceed; then it is the block's last.
            if let Some(index) = block
                .iter()
                .position(exceeds)
                .or_else(|| last_positive(block))
            {
                return number * BLOCK + index;
            }
        }
        before = after;
    }
    last_positive(weights).unwrap_or(0)
}

fn last_positive<W: Copy + Into<f64>>(weights: &[W]) -> Option<usize> {
    weights.iter().rposition(|&weight| weight.into() > 0.0)
}
