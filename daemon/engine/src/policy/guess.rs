//! Admission of looked-up tokens, which cost rows and no rounds.

use super::seat::Mode;
use super::{DraftKind, StepPlan};

impl StepPlan {
    /// How many of `guessed` tokens, which continue a match of `match_length` tokens in the text so far, are worth
    /// verifying; admits them. A second guess for the same request can only win where the first loses.
    #[must_use]
    pub fn offer_guess(&mut self, sequence: usize, match_length: usize, guessed: usize) -> usize {
        let kind = DraftKind::Lookup;
        let Some(seat) = self.seats.get(sequence).copied() else {
            return 0;
        };
        self.seats[sequence].views[kind.index()].asked = true;
        let view = &seat.views[kind.index()];
        let most = guessed.min(seat.left(0)).min(self.rows_left(&seat));
        if most == 0 || matches!(view.mode, Mode::Absent | Mode::Closed) {
            return 0;
        }
        let rest = 1.0 - seat.covered[0];
        let first = rest == 1.0;
        // Beside the first it makes a chain a tree.
        if !first && (seat.length.is_some() || seat.width == Some(1)) {
            return 0;
        }
        let others = (0..).zip(&self.seats);
        let others = others.filter(|(index, seat)| *index != sequence && seat.bounded);
        let others = others.map(|(_, seat)| seat.foreseen_gain(0));
        let others = others.fold(f64::INFINITY, f64::min);
        let (mut survival, mut gain, mut best) = (rest, 0.0, (0.0, 0, 0.0));
        for tokens in 1..=most {
            survival *= view.matches.at(match_length + tokens - 1);
            gain += survival;
            let seconds = self.row_seconds(tokens);
            if !self.fits(&seat, seconds) || !self.is_borne(&seat, gain.min(others), seconds) {
                break;
            }
            let value = gain - self.price * seconds;
            if value > best.0 || seat.length.is_some() {
                best = (value, tokens, gain);
            }
        }
        let (_, mut tokens, mut gain) = best;
        if tokens == 0 && view.probe_due && first && self.fits(&seat, self.row_seconds(1)) {
            self.seats[sequence].views[kind.index()].mode = Mode::Probe;
            (tokens, gain) = (1, view.matches.at(match_length));
        }
        if tokens > 0 {
            let mut survival = rest;
            let covered = &mut self.seats[sequence].covered;
            for (depth, covered) in covered.iter_mut().take(tokens).enumerate() {
                survival *= view.matches.at(match_length + depth);
                *covered += survival;
            }
            self.admit(sequence, kind, tokens, gain);
        }
        tokens
    }
}
