//! What steps and drafts cost on this machine, measured as they run.

/// Weight of the newest measurement.
const WEIGHT: f64 = 0.2;
/// One measurement moves an estimate by at most this factor: a page fault is no trend.
const CLAMP: f64 = 1.5;
/// Row counts that are told apart; beyond, costs are extrapolated.
const MAX_ROWS: usize = 64;

/// Measured cost, in seconds, of a target step by rows and of a drafted token.
#[derive(Clone, Debug)]
pub struct CostModel {
    steps: [Option<f64>; MAX_ROWS + 1],
    draft: Option<f64>,
}

impl Default for CostModel {
    fn default() -> Self {
        Self {
            steps: [None; MAX_ROWS + 1],
            draft: None,
        }
    }
}

impl CostModel {
    /// Takes a measured step of `rows` rows.
    pub fn record_step(&mut self, rows: usize, seconds: f64) {
        if let Some(estimate) = self.steps.get_mut(rows) {
            blend(estimate, seconds);
        }
    }

    /// Takes a measured draft of `tokens` tokens in all.
    pub fn record_draft(&mut self, tokens: usize, seconds: f64) {
        if tokens > 0 {
            blend(&mut self.draft, seconds / tokens as f64);
        }
    }

    /// Expected seconds of a step of `rows` rows: measured, or interpolated between measured neighbours. Beyond them
    /// a row is taken to cost a quarter of a step, which is cheap enough to be tried and then measured.
    #[must_use]
    pub fn step(&self, rows: usize) -> f64 {
        let measured = |rows: usize| {
            self.steps
                .get(rows)
                .copied()
                .flatten()
                .map(|cost| (rows as f64, cost))
        };
        let below = (1..=rows.min(MAX_ROWS)).rev().find_map(measured);
        let above = (rows..=MAX_ROWS).find_map(measured);
        let target = rows as f64;
        match (below, above) {
            (Some((low, cost)), Some((high, _))) if low == high => cost,
            (Some((low, low_cost)), Some((high, high_cost))) => {
                low_cost + (high_cost - low_cost) * (target - low) / (high - low)
            }
            (Some((low, cost)), None) => cost * (1.0 + 0.25 * (target - low) / low.max(1.0)),
            (None, Some((_, cost))) => cost,
            (None, None) => 1.0,
        }
    }

    /// Expected seconds to draft `tokens` tokens.
    #[must_use]
    pub fn draft(&self, tokens: usize) -> f64 {
        // Unmeasured: a twentieth of a step, as the usual ratio of parameters suggests.
        self.draft.unwrap_or_else(|| self.step(1) / 20.0) * tokens as f64
    }
}

fn blend(estimate: &mut Option<f64>, measured: f64) {
    *estimate = Some(match *estimate {
        Some(old) => old + WEIGHT * (measured.clamp(old / CLAMP, old * CLAMP) - old),
        None => measured,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_interpolated_between_measurements() {
        let mut costs = CostModel::default();
        costs.record_step(1, 1.0);
        costs.record_step(5, 3.0);
        assert!((costs.step(3) - 2.0).abs() < 1e-9);
        assert!((costs.step(1) - 1.0).abs() < 1e-9);
        assert!(costs.step(6) > 3.0);
    }

    #[test]
    fn an_outlier_moves_little() {
        let mut costs = CostModel::default();
        costs.record_step(1, 1.0);
        costs.record_step(1, 100.0);
        assert!(costs.step(1) < 1.2);
    }
}
