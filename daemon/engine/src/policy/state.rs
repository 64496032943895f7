//! What the policy knows of one request.

use super::acceptance::Acceptance;
use super::calibration::{Bias, Matches};
use super::probe::Probe;
use super::window::Window;
use super::{DraftKind, Ledger, SpeculationStats};

/// Steps that the achieved speed-up is averaged over.
const PACE_MEMORY: f64 = 32.0;

/// What the policy knows of one request.
#[derive(Clone, Debug, Default)]
pub struct DraftState {
    pub(super) tracks: [Track; DraftKind::COUNT],
    pub(super) window: Window,
    pub(super) pace: Pace,
    pub(super) ledger: Ledger,
    pub(super) stats: SpeculationStats,
}

/// One kind of drafter in one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Track {
    pub(super) acceptance: Acceptance,
    pub(super) bias: Bias,
    pub(super) matches: Matches,
    pub(super) probe: Probe,
}

impl DraftState {
    /// What speculation has cost the request.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What speculation did for the request.
    #[must_use]
    pub fn stats(&self) -> &SpeculationStats {
        &self.stats
    }

    /// Books a step that only read prompts: time in which plain decoding would have done the same.
    pub fn elapse(&mut self, seconds: f64) {
        self.ledger.elapse(seconds);
    }
}

/// Speed-up achieved over the last steps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    tokens: f64,
    plain_steps: f64,
    samples: f64,
}

impl Pace {
    /// Takes a step that committed so many tokens in the time of so many plain steps.
    pub(super) fn observe(&mut self, tokens: usize, plain_steps: f64) {
        self.samples = (self.samples + 1.0).min(PACE_MEMORY);
        self.tokens += (tokens as f64 - self.tokens) / self.samples;
        self.plain_steps += (plain_steps - self.plain_steps) / self.samples;
    }

    /// The speed-up; 1 until enough was seen, and where there is none.
    pub(super) fn speedup(&self) -> f64 {
        if self.samples < PACE_MEMORY / 2.0 || self.plain_steps <= 0.0 {
            return 1.0;
        }
        (self.tokens / self.plain_steps).max(1.0)
    }
}
