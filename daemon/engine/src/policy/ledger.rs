//! What speculation has cost a request so far, against plain decoding: the bound behind "never slower".

/// Plain steps that a request may lose in all.
pub const ALLOWANCE_STEPS: f64 = 10.0;
/// Share of the time spent that it may lose on top.
pub const ALLOWANCE_SHARE: f64 = 0.02;
/// Plain steps of past gain that may be lost again.
pub const CREDIT_STEPS: f64 = 20.0;

/// Seconds lost and spent by one request.
///
/// Losses end where the allowance does: a step whose whole extra cost does not fit into what [`Self::room`] leaves is
/// taken without drafts. So the allowance is overdrawn at most by what one step cost beyond its estimate. Draft time that
/// led to no token, a draft's catch-up and cache updates are part of a step's time and are booked with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ledger {
    lost: f64,
    elapsed: f64,
}

impl Ledger {
    /// Books a step of `seconds` in which `loss` seconds were lost (negative: gained), where a plain step takes `plain`.
    pub fn book(&mut self, seconds: f64, loss: f64, plain: f64) {
        self.elapsed += seconds;
        self.lost = (self.lost + loss).max(-CREDIT_STEPS * plain);
    }

    /// Books time that plain decoding takes as well: prompts, and steps without drafts.
    pub fn elapse(&mut self, seconds: f64) {
        self.elapsed += seconds;
    }

    /// Seconds that may still be lost, where a plain step takes `plain`; negative once overdrawn.
    #[must_use]
    pub fn room(&self, plain: f64) -> f64 {
        ALLOWANCE_STEPS * plain + ALLOWANCE_SHARE * self.elapsed - self.lost
    }

    /// Whether the request has lost all it may.
    #[must_use]
    pub fn exhausted(&self, plain: f64) -> bool {
        self.room(plain) <= 0.0
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
            ledger.book(2.0, 1.0, 1.0);
            steps += 1;
        }
        assert!((10..=12).contains(&steps), "{steps}");
        for _ in 0..200 {
            ledger.elapse(1.0);
        }
        assert!(ledger.room(1.0) > 3.0, "time gives room again");
    }

    #[test]
    fn old_gains_pay_for_few_losses() {
        let mut ledger = Ledger::default();
        for _ in 0..10_000 {
            ledger.book(1.0, -3.0, 1.0);
        }
        assert!((ledger.lost() + CREDIT_STEPS).abs() < 1e-9);
    }
}
