//! What speculation has cost a request so far, against plain decoding: the bound behind "never slower".

/// Plain steps that a request may lose in all.
const ALLOWANCE_STEPS: f64 = 10.0;
/// Share of the time spent that it may lose on top.
const ALLOWANCE_SHARE: f64 = 0.02;
/// Plain steps of past gain that may be lost again.
const CREDIT_STEPS: f64 = 20.0;

/// Seconds lost and spent by one request.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    lost: f64,
    elapsed: f64,
}

impl Ledger {
    /// Books a step that took `seconds` and committed `tokens`, where plain decoding takes `plain` seconds a token.
    pub fn book(&mut self, seconds: f64, tokens: usize, plain: f64) {
        self.elapsed += seconds;
        self.lost = (self.lost + seconds - tokens as f64 * plain).max(-CREDIT_STEPS * plain);
    }

    /// Whether the request has lost all it may, where a plain step takes `plain` seconds.
    #[must_use]
    pub fn exhausted(&self, plain: f64) -> bool {
        self.lost > ALLOWANCE_STEPS * plain + ALLOWANCE_SHARE * self.elapsed
    }

    /// Seconds lost so far; negative where speculation gained.
    #[must_use]
    pub fn lost(&self) -> f64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_end_at_the_allowance() {
        let mut ledger = Ledger::default();
        let mut steps = 0;
        while !ledger.exhausted(1.0) {
            ledger.book(2.0, 1, 1.0);
            steps += 1;
        }
        assert!((10..=12).contains(&steps), "{steps}");
    }

    #[test]
    fn old_gains_pay_for_few_losses() {
        let mut ledger = Ledger::default();
        for _ in 0..10_000 {
            ledger.book(1.0, 4, 1.0);
        }
        assert!(ledger.lost() >= -20.0);
    }
}
