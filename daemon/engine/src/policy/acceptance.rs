//! How often drafted tokens are right, by their position in the draft.

use super::MAX_DRAFT_LENGTH;

/// Weight of the newest observation.
const WEIGHT: f64 = 0.1;
/// Assumed before anything is seen: better than break-even on fast verification, so that drafting gets its chance.
const PRIOR: f64 = 0.6;

/// Moving averages of the conditional acceptance at each position, given that all before were accepted.
#[derive(Clone, Debug)]
pub struct Acceptance {
    rates: [f64; MAX_DRAFT_LENGTH],
}

impl Default for Acceptance {
    fn default() -> Self {
        Self {
            rates: [PRIOR; MAX_DRAFT_LENGTH],
        }
    }
}

impl Acceptance {
    /// Probability that the drafted token at `position` is accepted if all before it are.
    #[must_use]
    pub fn at(&self, position: usize) -> f64 {
        self.rates[position.min(MAX_DRAFT_LENGTH - 1)]
    }

    /// Learns from one verified chain.
    pub fn record(&mut self, drafted: usize, accepted: usize) {
        // Positions behind the first rejected one say nothing.
        for position in 0..drafted.min(accepted + 1) {
            let hit = f64::from(u8::from(position < accepted));
            let rate = &mut self.rates[position.min(MAX_DRAFT_LENGTH - 1)];
            *rate += WEIGHT * (hit - *rate);
        }
    }
}
