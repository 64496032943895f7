//! How often drafted tokens are right, by their depth in the draft.

use super::rate::Rate;

/// Depths that are told apart; deeper nodes count as the last.
pub const DEPTHS: usize = 16;
/// Assumed before a pair has drafted anything: better than break-even on fast verification, so drafting gets its chance.
const PRIOR: f64 = 0.6;
/// Observations that a request's estimates remember.
pub(super) const REQUEST_MEMORY: f64 = 50.0;
/// Rounds that are looked back on to tell how many were in vain.
const ROUND_MEMORY: f64 = 12.0;
/// Observations that a pair's estimates remember.
pub(super) const PAIR_MEMORY: f64 = 400.0;
/// Observations that the pair's history counts as in a request's, and the assumption in a pair's.
const PRIOR_WEIGHT: f64 = 6.0;
const PAIR_PRIOR_WEIGHT: f64 = 20.0;
/// Observations that a request's rate over all depths counts as at one depth.
const POOL_WEIGHT: f64 = 12.0;

/// Acceptance given that everything above was accepted: over all depths, and at each.
///
/// A depth that was seen little borrows from the rate over all depths, and a request that was seen little from its pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Acceptance {
    overall: Rate,
    depths: [Rate; DEPTHS],
    /// How often a round of the drafter led to a token worth verifying.
    offers: Rate,
}

impl Acceptance {
    /// Probability that a token drafted at `depth` is accepted if all above it are, in a request of this history whose
    /// pair has the history `pair`.
    #[must_use]
    pub(super) fn at(&self, depth: usize, pair: &Self) -> f64 {
        let depth = depth.min(DEPTHS - 1);
        let pair_overall = pair.overall.pooled(PRIOR, PAIR_PRIOR_WEIGHT);
        let shape = pair.depths[depth].pooled(pair_overall, POOL_WEIGHT) / pair_overall;
        let overall = self.overall.with_prior(pair_overall, PRIOR_WEIGHT);
        let pooled = (overall * shape).min(0.999);
        self.depths[depth].pooled(pooled, POOL_WEIGHT)
    }

    /// Probability that a round leads to a token worth verifying.
    #[must_use]
    pub(super) fn offered(&self) -> f64 {
        self.offers.with_prior(1.0, 1.0)
    }

    pub(super) fn observe(&mut self, depth: usize, accepted: bool, memory: f64) {
        self.overall.observe(accepted, memory);
        self.depths[depth.min(DEPTHS - 1)].observe(accepted, memory);
    }

    pub(super) fn observe_round(&mut self, offered: bool) {
        self.offers.observe(offered, ROUND_MEMORY);
    }

    /// A step without a draft: what was learned is a little older.
    pub(super) fn age(&mut self) {
        let rates = self
            .depths
            .iter_mut()
            .chain([&mut self.overall, &mut self.offers]);
        rates.for_each(|rate| rate.age(0.97, 12.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_request_starts_from_its_pair_and_then_follows_its_own_text() {
        let (mut pair, mut request) = (Acceptance::default(), Acceptance::default());
        for step in 0..2000 {
            pair.observe(0, step % 10 != 0, PAIR_MEMORY);
        }
        assert!((request.at(0, &pair) - 0.9).abs() < 0.03);
        for _ in 0..40 {
            request.observe(0, false, REQUEST_MEMORY);
        }
        assert!(request.at(0, &pair) < 0.1, "{}", request.at(0, &pair));
    }

    #[test]
    fn depths_differ_where_they_were_seen_to_differ() {
        let mut request = Acceptance::default();
        for _ in 0..100 {
            request.observe(0, true, REQUEST_MEMORY);
            request.observe(1, false, REQUEST_MEMORY);
        }
        let pair = Acceptance::default();
        assert!(request.at(0, &pair) > 0.8 && request.at(1, &pair) < 0.2);
    }
}
