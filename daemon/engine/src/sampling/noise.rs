//! Randomness shared by target and draft, for requests with a seed.
//!
//! The token at a position is argmax over the support of ln pᵢ + Gᵢ with Gumbel noise Gᵢ keyed by (seed, position, token
//! id): distributed as p, and the same whoever drafts (arXiv 2408.07978). Computed as an exponential race: with
//! G = -ln E and E exponential, the argmax is the least Eᵢ / pᵢ, and one logarithm is gone. E = -ln(1 - w) for uniform w,
//! and -ln(1 - w) ≥ w, so a token with w / pᵢ above the leader's time cannot win and needs no logarithm either: of a
//! whole vocabulary, about ten reach one.

#[cfg(test)]
mod tests;

use tandem_model::TokenId;
use tandem_model::wide;

use super::Distribution;
use super::ln::neg_ln_one_minus;

/// Odd, without visible pattern in its bits: 2⁶⁴ divided by the golden ratio.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Tokens whose noise is computed together, and usually dismissed together.
const BLOCK: usize = 64;
/// Bits of the noise that usually dismiss a token: as many as single precision holds.
const FIRST_BITS: u32 = 24;

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
        let mut race = Race {
            leaders,
            arrived: 0,
            limit: f64::INFINITY,
        };
        run(&mut race, self.key(position), distribution);
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

    /// Whether that holds for a whole block, as far as the first bits of its noise tell: without a branch per token, and in
    /// single precision, of which a vector holds more. Where they do not tell, the exact test decides.
    #[inline(always)]
    fn is_hopeless(&self, hashes: &[u64; BLOCK], weights: &[f32]) -> bool {
        /// More than all rounding of limit, weight and product.
        const MARGIN: f32 = (1.0 - 1.0 / (1 << 20) as f32) / (1 << FIRST_BITS) as f32;
        // Infinity times 0 is not late, and what lies past the end is not there.
        let Ok(weights) = <&[f32; BLOCK]>::try_from(weights) else {
            return false;
        };
        // Where weights are so large that times are no normal numbers, too late a limit does no harm.
        let limit = (self.limit as f32).max(f32::MIN_POSITIVE);
        let late = |at: usize| {
            let first = (hashes[at] >> (64 - FIRST_BITS)) as i32;
            first as f32 * MARGIN > limit * weights[at]
        };
        (0..BLOCK).fold(true, |all, at| all & late(at))
    }

    /// Lets one token take its place, if it gets one. Few come here, and the loop around is the shorter for it.
    #[inline(never)]
    fn enter(&mut self, token: TokenId, w: f64, weight: f64) {
        if weight <= 0.0 || self.is_late(w, weight) {
            return;
        }
        let time = neg_ln_one_minus(w) / weight;
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

wide! {
    /// Lets all tokens race.
    fn run[](race: &mut Race<'_>, key: u64, distribution: &Distribution) -> () = run_inline
}

#[inline(always)]
fn run_inline(race: &mut Race<'_>, key: u64, distribution: &Distribution) {
    let (weights, tokens) = (distribution.weights(), distribution.tokens());
    for start in (0..weights.len()).step_by(BLOCK) {
        let weights = &weights[start..weights.len().min(start + BLOCK)];
        let mut hashes = [0; BLOCK];
        if distribution.is_dense() {
            for (at, hash) in hashes.iter_mut().enumerate() {
                *hash = self::hash(key, (start + at) as TokenId);
            }
        } else {
            for (hash, &token) in hashes.iter_mut().zip(&tokens[start..]) {
                *hash = self::hash(key, token);
            }
        }
        if race.is_hopeless(&hashes, weights) {
            continue;
        }
        for (offset, (&hash, &weight)) in hashes.iter().zip(weights).enumerate() {
            let token = distribution.token(start + offset);
            race.enter(token, uniform(hash), f64::from(weight));
        }
    }
}

/// The noise of a token as 64 bits.
#[inline(always)]
fn hash(key: u64, token: TokenId) -> u64 {
    mix(key.wrapping_add(u64::from(token).wrapping_mul(STRIDE)))
}

/// The same, uniform in (0, 1] with 53 significant bits also near 0, where the race is decided; at least 2⁻⁶⁴.
fn uniform(hash: u64) -> f64 {
    // 63 bits, as signed numbers convert in one instruction.
    ((hash >> 1) as i64 as f64 + 0.5) * (0.5 / (1_u64 << 62) as f64)
}

/// The 64-bit finalizer of SplitMix64 (Stafford's variant 13).
#[inline(always)]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}
