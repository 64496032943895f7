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

/// Tokens whose noise is computed together, and usually dismissed together.
const BLOCK: usize = 16;

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

impl Arrival {
    /// What no token is late against; token 0 stands for a row that says nothing.
    const NEVER: Self = Self {
        time: f64::INFINITY,
        token: 0,
    };
}

impl Noise {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The token at `position`.
    pub(crate) fn draw(self, distribution: &Distribution, position: usize) -> TokenId {
        let mut winner = [Arrival::NEVER];
        self.race(distribution, position, &mut winner);
        winner[0].token
    }

    /// The first `count` tokens of the race, in order; fewer where the support is smaller.
    pub(super) fn first(
        self,
        distribution: &Distribution,
        position: usize,
        count: usize,
    ) -> Vec<Arrival> {
        let mut leaders = vec![Arrival::NEVER; count];
        let arrived = self.race(distribution, position, &mut leaders);
        leaders.truncate(arrived);
        leaders
    }

    /// Fills `leaders` in order and says how many arrived.
    ///
    /// A hash and a comparison per token, and about count·ln(V) logarithms in all.
    fn race(self, distribution: &Distribution, position: usize, leaders: &mut [Arrival]) -> usize {
        if leaders.is_empty() {
            return 0;
        }
        let key = self.key(position);
        let mut race = Race {
            leaders,
            arrived: 0,
            limit: f64::INFINITY,
        };
        for (number, weights) in distribution.weights().chunks(BLOCK).enumerate() {
            let start = number * BLOCK;
            let noise = if distribution.is_dense() {
                noise_block(key, start as TokenId..)
            } else {
                noise_block(key, distribution.tokens()[start..].iter().copied())
            };
            if race.is_hopeless(&noise, weights) {
                continue;
            }
            for (offset, (w, &weight)) in noise.into_iter().zip(weights).enumerate() {
                race.enter(distribution.token(start + offset), w, f64::from(weight));
            }
        }
        race.arrived
    }

    fn key(self, position: usize) -> u64 {
        mix(mix(self.seed.wrapping_add(STRIDE))
            .wrapping_add((position as u64).wrapping_mul(STRIDE)))
    }
}

/// The race so far.
struct Race<'a> {
    /// The best so far, in order, and room for the rest.
    leaders: &'a mut [Arrival],
    arrived: usize,
    /// A time to beat; infinite until there is no room.
    limit: f64,
}

impl Race<'_> {
    /// Whether a token cannot beat the limit, by the bound -ln(1 - w) ≥ w.
    fn is_late(&self, w: f64, weight: f64) -> bool {
        /// More than all rounding between the bound and the exact comparison.
        const MARGIN: f64 = 1.0 - 1.0 / (1_u64 << 40) as f64;
        w * MARGIN > self.limit * weight
    }

    /// Whether that holds for a whole block.
    fn is_hopeless(&self, noise: &[f64; BLOCK], weights: &[f32]) -> bool {
        let late = |(&w, &weight): (&f64, &f32)| self.is_late(w, f64::from(weight));
        // Without a branch per token. Infinity times 0 is not late, and goes on to the exact test.
        noise
            .iter()
            .zip(weights)
            .map(late)
            .fold(true, |all, late| all & late)
    }

    fn enter(&mut self, token: TokenId, w: f64, weight: f64) {
        if weight <= 0.0 || self.is_late(w, weight) {
            return;
        }
        let time = math::neg_ln_one_minus(w) / weight;
        // Strictly less: on equal times the lower id stays ahead.
        let room = self.arrived < self.leaders.len();
        if room || time < self.limit {
            let ahead = &self.leaders[..self.arrived];
            let rank = ahead.partition_point(|leader| leader.time <= time);
            // The last one makes room where there is none.
            self.arrived += usize::from(room);
            let behind = &mut self.leaders[rank..self.arrived];
            behind.rotate_right(1);
            behind[0] = Arrival { time, token };
            if self.arrived == self.leaders.len() {
                self.limit = self.leaders[self.arrived - 1].time;
            }
        }
    }
}

/// Noise of the next [`BLOCK`] tokens; 0 past their end.
fn noise_block(key: u64, tokens: impl Iterator<Item = TokenId>) -> [f64; BLOCK] {
    let mut noise = [0.0; BLOCK];
    noise
        .iter_mut()
        .zip(tokens)
        .for_each(|(w, token)| *w = uniform(key, token));
    noise
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
