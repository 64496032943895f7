//! What a drafter's own confidence is worth: how often tokens drawn at a given confidence were accepted.

use super::rate::{Rate, odds};

/// Siblings that are told apart; later ones count as the last.
const SIBLINGS: usize = 4;
/// Bins of confidence.
const BINS: usize = 10;
/// Bins of match length: 1, 2–3, 4–7, and so on.
const MATCHES: usize = 6;
/// Observations that a drafter's confidence counts as where it is all that is known of its first token: drafts are mostly
/// trained to be about as sure as they are right, which tells tokens apart before any history does.
const CONFIDENCE_WEIGHT: f64 = 4.0;
/// Observations before a bin says anything of a later sibling, which can only win where the first one loses.
const LEAST_SAMPLES: f64 = 10.0;
/// Observations that a bin of confidence remembers.
const MEMORY: f64 = 100.0;
/// Observations that what a pair knows of a match length counts as in a request.
const MATCH_WEIGHT: f64 = 3.0;
/// Acceptance assumed for the first token after a match, by bin of its length.
const MATCH_PRIORS: [f64; MATCHES] = [0.15, 0.35, 0.55, 0.7, 0.8, 0.9];

/// A pair's acceptance by confidence, one curve per sibling index.
///
/// A node counts as accepted where its token is the one that was committed after its accepted parent, so rates of later
/// siblings already say that an earlier one may win.
#[derive(Clone, Debug, Default)]
pub(super) struct Calibration {
    bins: [[Rate; BINS]; SIBLINGS],
}

impl Calibration {
    /// Acceptance at this confidence; of later siblings once enough was seen.
    #[must_use]
    pub(super) fn at(&self, sibling: usize, confidence: f64) -> Option<f64> {
        let rate = &self.bins[sibling.min(SIBLINGS - 1)][bin(confidence)];
        let known = sibling == 0 || rate.samples() >= LEAST_SAMPLES;
        known.then(|| rate.with_prior(confidence, CONFIDENCE_WEIGHT))
    }

    pub(super) fn observe(&mut self, sibling: usize, confidence: f64, accepted: bool) {
        self.bins[sibling.min(SIBLINGS - 1)][bin(confidence)].observe(accepted, MEMORY);
    }
}

/// The bin of a confidence in 0..=1.
fn bin(confidence: f64) -> usize {
    ((confidence * BINS as f64) as usize).min(BINS - 1)
}

/// How a request's acceptance compares with what its pair's calibration predicts for the same tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bias {
    predicted: f64,
    accepted: f64,
    samples: f64,
}

impl Bias {
    pub(super) fn observe(&mut self, predicted: f64, accepted: bool, memory: f64) {
        self.samples = (self.samples + 1.0).min(memory);
        self.predicted += (predicted - self.predicted) / self.samples;
        self.accepted += (f64::from(u8::from(accepted)) - self.accepted) / self.samples;
    }

    /// A prediction of the pair's calibration, shifted to this request: its odds times the ratio of the odds seen and
    /// predicted here.
    #[must_use]
    pub(super) fn correct(&self, predicted: f64) -> f64 {
        if self.samples == 0.0 {
            return predicted;
        }
        let seen = (self.samples * self.accepted + 4.0 * self.predicted) / (self.samples + 4.0);
        let corrected = odds(predicted) * odds(seen) / odds(self.predicted);
        corrected / (1.0 + corrected)
    }
}

/// Acceptance of looked-up tokens by the length of the match they continue.
#[derive(Clone, Debug, Default)]
pub(super) struct Matches {
    bins: [Rate; MATCHES],
}

impl Matches {
    /// Probability that a token which continues a match is accepted, by match length, in a request of this history whose
    /// pair has the history `pair`.
    #[must_use]
    pub(super) fn rates(&self, pair: &Self) -> MatchRates {
        MatchRates(std::array::from_fn(|bin| {
            let prior = pair.bins[bin].with_prior(MATCH_PRIORS[bin], MATCH_WEIGHT);
            self.bins[bin].with_prior(prior, MATCH_WEIGHT)
        }))
    }

    pub(super) fn observe(&mut self, length: usize, accepted: bool, memory: f64) {
        self.bins[match_bin(length)].observe(accepted, memory);
    }
}

/// Acceptance by match length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MatchRates([f64; MATCHES]);

impl MatchRates {
    /// Probability that a token which continues a match of `length` tokens is accepted.
    #[must_use]
    pub(super) fn at(&self, length: usize) -> f64 {
        self.0[match_bin(length)]
    }
}

fn match_bin(length: usize) -> usize {
    (length.max(1).ilog2() as usize).min(MATCHES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_believed_until_bins_know_better() {
        let mut calibration = Calibration::default();
        assert_eq!(calibration.at(0, 0.95), Some(0.95));
        assert_eq!(calibration.at(1, 0.95), None);
        for step in 0..200 {
            calibration.observe(0, 0.95, step % 10 != 0);
            calibration.observe(0, 0.25, step % 10 == 0);
        }
        assert!((calibration.at(0, 0.95).unwrap() - 0.9).abs() < 0.05);
        assert!((calibration.at(0, 0.25).unwrap() - 0.1).abs() < 0.05);
        for _ in 0..30 {
            calibration.observe(0, 0.55, false);
        }
        assert!(calibration.at(0, 0.55).unwrap() < 0.1);
        assert_eq!(calibration.at(1, 0.25), None);
    }

    #[test]
    fn a_request_that_does_worse_than_its_pair_is_corrected() {
        let mut bias = Bias::default();
        assert_eq!(bias.correct(0.7), 0.7);
        for step in 0..200 {
            bias.observe(0.8, step % 2 == 0, 24.0);
        }
        let (sure, unsure) = (bias.correct(0.9), bias.correct(0.5));
        assert!(
            sure < 0.8 && unsure < 0.35 && unsure < sure,
            "{sure} {unsure}"
        );
    }

    #[test]
    fn longer_matches_are_trusted_more_until_they_disappoint() {
        let (pair, mut request) = (Matches::default(), Matches::default());
        let fresh = request.rates(&pair);
        assert!(fresh.at(40) > fresh.at(3));
        for _ in 0..12 {
            request.observe(40, false, 10.0);
        }
        assert!(request.rates(&pair).at(40) < 0.3);
    }
}
