//! Whether and when a failed call is made again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::Error;

/// How often a call is tried while nothing of its answer was delivered, and how long between.
///
/// Only failures that may pass by themselves are tried again: the daemon does not answer, the connection broke, or the
/// daemon says that it is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Most attempts, the first included; at least 1.
    pub attempts: u32,
    /// Pause before the second attempt; doubles with each one after.
    pub first_pause: Duration,
    /// Longest pause, unless the daemon asks for a longer one.
    pub longest_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 4,
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(2),
        }
    }
}

impl Retry {
    /// Makes every call once.
    #[must_use]
    pub fn never() -> Self {
        Self {
            attempts: 1,
            ..Self::default()
        }
    }

    /// Runs `call` until it succeeds, fails for good, or the attempts are used up.
    pub(crate) async fn run<T, F>(&self, call: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut failures = 0;
        loop {
            let error = match call().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            failures += 1;
            if failures >= self.attempts || !error.may_pass() {
                return Err(error);
            }
            let asked = error.retry_after().unwrap_or_default();
            tokio::time::sleep(asked.max(self.pause(failures, random_fraction()))).await;
        }
    }

    /// Returns the pause after so many failures: exponential, of which the upper half is spread by `fraction` in 0..1
    /// so that clients that failed together do not come back together.
    fn pause(&self, failures: u32, fraction: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(16);
        let full = self
            .first_pause
            .saturating_mul(1 << doublings)
            .min(self.longest_pause);
        full.mul_f64(0.5 + fraction.clamp(0.0, 1.0) / 2.0)
    }
}

/// Returns a random number in 0..1. The standard library seeds each hasher of this kind differently.
fn random_fraction() -> f64 {
    f64::from(RandomState::new().build_hasher().finish() as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let retry = Retry::default();
        assert_eq!(retry.pause(1, 1.0), Duration::from_millis(50));
        assert_eq!(retry.pause(2, 1.0), Duration::from_millis(100));
        assert_eq!(retry.pause(2, 0.0), Duration::from_millis(50));
        assert_eq!(retry.pause(40, 1.0), Duration::from_secs(2));
    }

    #[test]
    fn random_fractions_differ_and_stay_in_range() {
        let drawn: Vec<f64> = (0..32).map(|_| random_fraction()).collect();
        assert!(drawn.iter().all(|value| (0.0..=1.0).contains(value)));
        assert!(drawn.iter().any(|value| (value - drawn[0]).abs() > 0.01));
    }
}
