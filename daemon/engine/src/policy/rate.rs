//! A probability learned from yes and no.

/// The mean of what was observed, then a moving average: the newest observation never weighs less than one in `memory`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    value: f64,
    /// Observations remembered.
    samples: f64,
    /// Observations in all.
    seen: f64,
}

impl Rate {
    /// Takes an observation.
    pub(super) fn observe(&mut self, hit: bool, memory: f64) {
        self.samples = (self.samples + 1.0).min(memory);
        self.seen += 1.0;
        self.value += (f64::from(u8::from(hit)) - self.value) / self.samples;
    }

    /// The estimate, where `prior` counts as much as `weight` observations at first, and ever less: it is knowledge about
    /// others, which must not keep alive what fails here.
    pub(super) fn with_prior(&self, prior: f64, weight: f64) -> f64 {
        self.pooled(prior, weight * weight / (weight + self.seen / 4.0))
    }

    /// The estimate, where `other` counts as much as `weight` observations throughout.
    pub(super) fn pooled(&self, other: f64, weight: f64) -> f64 {
        (self.samples * self.value + weight * other) / (self.samples + weight)
    }

    /// Observations that the estimate rests on, at most the memory it was given.
    pub(super) fn samples(&self) -> f64 {
        self.samples
    }

    /// Lets old observations weigh less against new ones, but not less than `least` of them.
    pub(super) fn age(&mut self, factor: f64, least: f64) {
        self.samples = (self.samples * factor).max(self.samples.min(least));
    }
}

/// Odds of a probability, away from 0 and 1.
pub(super) fn odds(probability: f64) -> f64 {
    let probability = probability.clamp(0.01, 0.99);
    probability / (1.0 - probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_observations_are_a_mean_and_many_a_moving_average() {
        let mut rate = Rate::default();
        for hit in [true, false, false, true] {
            rate.observe(hit, 10.0);
        }
        assert!((rate.pooled(0.9, 0.0) - 0.5).abs() < 1e-12);
        for _ in 0..100 {
            rate.observe(true, 10.0);
        }
        let before = rate.pooled(0.0, 0.0);
        rate.observe(false, 10.0);
        assert!((before - rate.pooled(0.0, 0.0) - 0.1 * before).abs() < 1e-9);
    }
}
