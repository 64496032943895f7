//! Admission of looked-up tokens, which cost rows and no rounds.

use super::seat::Mode;
use super::{DraftKind, StepPlan};

/// Other requests, and what the one that gains least gains: with what it has, and with a token that it may draft.
struct Waiting {
    requests: usize,
    present: f64,
    foreseen: f64,
}

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
        let waiting = self.waiting(sequence);
        let (mut survival, mut gain, mut best) = (rest, 0.0, (0.0, 0, 0.0));
        for tokens in 1..=most {
            survival *= view.matches.at(match_length + tokens - 1);
            gain += survival;
            let seconds = self.row_seconds(tokens);
            // What others may draft counts where this leaves a row to each.
            let theirs = match self.left_of_group(self.drafted + tokens) < waiting.requests {
                true => waiting.present,
                false => waiting.foreseen,
            };
            if !self.fits(&seat, seconds) || !self.is_borne(&seat, gain.min(theirs), seconds) {
                break;
            }
            let worth = match self.running {
                1 => seconds,
                _ => self.side_seconds(tokens),
            };
            let value = gain - self.price * worth;
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

    /// The requests that wait for a guess of another one.
    fn waiting(&self, sequence: usize) -> Waiting {
        let mut waiting = Waiting {
            requests: 0,
            present: f64::INFINITY,
            foreseen: f64::INFINITY,
        };
        let seats = (0..).zip(&self.seats);
        for (_, seat) in seats.filter(|(index, seat)| *index != sequence && seat.bounded) {
            waiting.requests += 1;
            waiting.present = waiting.present.min(seat.tokens - 1.0);
            waiting.foreseen = waiting.foreseen.min(seat.foreseen_gain(0));
        }
        waiting
    }
}
