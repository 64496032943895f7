//! Randomness shared by target and draft, for requests with a seed.
//!
//! The token at a position is argmax over the support of ln pᵢ + Gᵢ with Gumbel noise Gᵢ keyed by (seed, position, token
//! id): distributed as p, and the same whoever drafts (arXiv 2408.07978). Computed as an exponential race: with
//! G = -ln E and E exponential, the argmax is the least Eᵢ / pᵢ, and one logarithm is gone. E = -ln(1 - w) for uniform w,
//! and -ln(1 - w) ≥ w, so a token with w / pᵢ above the leader's time cannot win and needs no logarithm either: of a
//! whole vocabulary, about ten reach one.

#[cfg(test)]
mod tests;

use super::{Distribution, math};
use crate::TokenId;

/// Odd, without visible pattern in its bits: 2⁶⁴ divided by the golden ratio.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Counter-based noise: the SplitMix64 stream whose start is mixed from (seed, position), indexed by token id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    seed: u64,
}

/// One token's time in the race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    pub(super) time: f64,
    pub(super) token: TokenId,
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The token at `position`.
    pub(crate) fn draw(self, distribution: &Distribution, position: usize) -> TokenId {
        self.first(distribution, position, 1)
            .first()
            .map_or(0, |arrival| arrival.token)
    }

    /// The first `count` tokens of the race, in order; fewer where the support is smaller.
    pub(super) fn first(
        self,
        distribution: &Distribution,
        position: usize,
        count: usize,
    ) -> Vec<Arrival> {
        /// More than all rounding between the bound and the exact comparison.
        const MARGIN: f64 = 1.0 - 1.0 / (1_u64 << 40) as f64;
        let key = self.key(position);
        let mut leaders: Vec<Arrival> = Vec::with_capacity(count + 1);
        let mut limit = if count == 0 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
        for (index, &weight) in distribution.weights().iter().enumerate() {
            let weight = f64::from(weight);
            let token = distribution.token(index);
            let w = uniform(key, token);
            // Written so that infinity times 0 goes on to the exact test.
            if w * MARGIN > limit * weight || weight <= 0.0 {
                continue;
            }
            let time = math::neg_ln_one_minus(w) / weight;
            // Strictly less: on equal times the lower id stays ahead.
            if leaders.len() < count || time < limit {
                let rank = leaders.partition_point(|leader| leader.time <= time);
                leaders.insert(rank, Arrival { time, token });
                leaders.truncate(count);
                if leaders.len() == count {
                    limit = leaders.last().map_or(limit, |leader| leader.time);
                }
            }
        }
        leaders
    }

    fn key(self, position: usize) -> u64 {
        mix(mix(self.seed.wrapping_add(STRIDE))
            .wrapping_add((position as u64).wrapping_mul(STRIDE)))
    }
}

/// Uniform in (0, 1] with 53 significant bits also near 0, where the race is decided; at least 2⁻⁶⁴.
fn uniform(key: u64, token: TokenId) -> f64 {
    let bits = mix(key.wrapping_add(u64::from(token).wrapping_mul(STRIDE)));
    // 63 bits, as signed numbers convert in one instruction.
    ((bits >> 1) as i64 as f64 + 0.5) * (0.5 / (1_u64 << 62) as f64)
}

/// The 64-bit finalizer of SplitMix64 (Stafford's variant 13).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
