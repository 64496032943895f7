//! What steps and draft rounds cost on this machine, measured as they run.

use super::catching_up::CatchingUp;
use super::surface::Surface;
use super::{CatchUp, DraftKind};

/// A draft round and a caught-up token before either was measured, in plain steps: the usual ratio of parameters, and
/// the same spread over a batch.
const ROUND_PRIOR: f64 = 1.0 / 20.0;
const CATCH_UP_PRIOR: f64 = 1.0 / 100.0;

/// What many rows may cost, in steps of one row, so that they cost hardly more.
const FLAT: f64 = 1.2;

/// What a step of so many rows takes, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCost {
    /// Attended positions at which this holds; smaller numbers count as the smallest one.
    pub positions: usize,
    /// Rows.
    pub rows: usize,
    /// Moving average over the latest steps.
    pub seconds: f64,
    /// Steps measured.
    pub samples: u32,
}

/// Measured cost, in seconds, of target steps by rows and attended positions, and of draft rounds.
///
/// Attended positions are the cached positions of all sequences of the step together: what attention has to read.
#[derive(Clone, Debug, Default)]
pub struct CostModel {
    steps: Surface,
    /// In plain steps.
    rounds: [Surface; DraftKind::COUNT],
    catching_up: [CatchingUp; DraftKind::COUNT],
}

impl CostModel {
    /// Takes a measured decoding step: the target's forward and what is done with it, without drafting. Steps that carry
    /// prompt chunks say nothing about decoding and must not be recorded.
    pub fn record_step(&mut self, rows: usize, positions: usize, seconds: f64) {
        self.steps.record_settled(rows, positions, seconds);
    }

    /// Takes a step whose time says nothing of the next of as many rows, since the device prepared something on the way:
    /// that so many rows can be had, and where a device is never done preparing, the time too.
    pub fn record_cold_step(&mut self, rows: usize, positions: usize, seconds: f64) {
        self.steps.record_cold(rows, positions, seconds);
    }

    /// The steps measured so far, by positions, then by rows.
    #[must_use]
    pub fn measured_steps(&self) -> Vec<StepCost> {
        let step = |(positions, rows, seconds, samples)| StepCost {
            positions,
            rows,
            seconds,
            samples,
        };
        self.steps.measured().map(step).collect()
    }

    /// Takes a measured forward of a drafter over `rows` rows. It is kept in plain steps: a machine that became slower or
    /// faster since the drafter was last used became so for both.
    pub fn record_round(&mut self, kind: DraftKind, rows: usize, positions: usize, seconds: f64) {
        let plain = self.step(1, positions);
        self.rounds[kind.index()].record_settled(rows, positions, seconds / plain);
    }

    /// Takes a forward of a drafter during which its device prepared something, as [`Self::record_cold_step`] does.
    pub fn record_cold_round(
        &mut self,
        kind: DraftKind,
        rows: usize,
        positions: usize,
        seconds: f64,
    ) {
        let plain = self.step(1, positions);
        self.rounds[kind.index()].record_cold(rows, positions, seconds / plain);
    }

    /// Takes what a drafter needed to take in tokens that it had missed.
    pub fn record_catch_up(&mut self, kind: DraftKind, took: CatchUp) {
        self.catching_up[kind.index()].record(took);
    }

    /// Expected seconds of a step, non-decreasing in rows; 1 while nothing was measured.
    #[must_use]
    pub fn step(&self, rows: usize, positions: usize) -> f64 {
        self.steps.at(rows, positions).unwrap_or(1.0)
    }

    /// Most rows that a decoding step should have: half as many again as one had, and twice as many while so many cost hardly
    /// more than one, 4 at least. Kernels take rows in chunks, so costs jump, and what lies far beyond the measured looks
    /// cheaper than it is; but a request is over in some fifty steps, which is few to find out that rows are free.
    #[must_use]
    pub fn most_rows(&self, positions: usize) -> usize {
        let frontier = self.steps.frontier(positions);
        let is_flat = self.step(frontier, positions) < FLAT * self.step(1, positions);
        let further = if is_flat {
            frontier.max(3)
        } else {
            (frontier / 2).max(1)
        };
        frontier + further
    }

    /// Expected seconds of a drafter's forward; nothing for no rows, and for lookup.
    #[must_use]
    pub fn round(&self, kind: DraftKind, rows: usize, positions: usize) -> f64 {
        if rows == 0 || kind == DraftKind::Lookup {
            return 0.0;
        }
        let plain_steps = self.rounds[kind.index()].at(rows, positions);
        plain_steps.unwrap_or(ROUND_PRIOR) * self.step(1, positions)
    }

    /// Expected seconds for a drafter to take in `tokens` tokens that it has missed.
    #[must_use]
    pub fn catch_up(&self, kind: DraftKind, tokens: usize, positions: usize) -> f64 {
        let prior = || tokens as f64 * CATCH_UP_PRIOR * self.step(1, positions);
        self.catching_up[kind.index()]
            .seconds(tokens)
            .unwrap_or_else(prior)
    }

    /// Whether a step of `rows` rows, as it is without drafts, should be measured again.
    ///
    /// A pair whose drafts always pay takes no plain step, and then nothing says any more what one would cost: gains and
    /// the ledger would be measured against the past. Drift that all row counts share reaches a stale one through the
    /// others; for the rest a plain step is taken when the last one is 4, 16, 64 and then 256 steps ago. At a speed-up of
    /// two that costs one token in 512.
    #[must_use]
    pub fn needs_plain_step(&self, rows: usize, positions: usize) -> bool {
        if self.steps.at(rows, positions).is_none() {
            return true;
        }
        let (count, age) = self.steps.age(rows, positions);
        count > 0 && age >= 4_u32.saturating_pow(count).min(256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 second and 1 more per 4,096 positions, a tenth for each further row.
    fn truth(rows: usize, positions: usize) -> f64 {
        1.0 + positions as f64 / 4096.0 + 0.1 * (rows - 1) as f64
    }

    #[test]
    fn costs_follow_a_growing_context() {
        let mut costs = CostModel::default();
        let mut worst: f64 = 0.0;
        for positions in 300..6000 {
            let rows = if positions % 50 == 0 { 1 } else { 4 };
            costs.record_step(rows, positions, truth(rows, positions));
            for rows in [1, 4] {
                let off = costs.step(rows, positions) / truth(rows, positions) - 1.0;
                worst = worst.max(off.abs() * f64::from(u8::from(positions > 500)));
            }
        }
        assert!(worst < 0.05, "{worst}");
        // A shorter context again: what was learned there still holds.
        for rows in [1, 4] {
            let off = costs.step(rows, 700) / truth(rows, 700) - 1.0;
            assert!(off.abs() < 0.15, "{rows} rows are off by {off}");
        }
    }

    #[test]
    fn longer_contexts_than_seen_cost_at_least_as_much() {
        let mut costs = CostModel::default();
        (0..20).for_each(|_| costs.record_step(2, 1000, 1.5));
        assert!((costs.step(2, 100_000) - 1.5).abs() < 1e-9);
        assert!((costs.step(2, 10) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn measured_steps_are_told_by_positions_and_rows() {
        let mut costs = CostModel::default();
        assert_eq!(costs.measured_steps(), []);
        for rows in [4, 1, 4] {
            costs.record_step(rows, 100, truth(rows, 0));
        }
        let told = |positions, rows, samples| StepCost {
            positions,
            rows,
            seconds: truth(rows, 0),
            samples,
        };
        assert_eq!(costs.measured_steps(), [told(256, 1, 1), told(256, 4, 2)]);
        costs.record_step(2, 512, 1.5);
        let longer = costs.measured_steps();
        assert!(
            longer
                .iter()
                .any(|step| (step.positions, step.rows) == (512, 2))
        );
    }

    #[test]
    fn what_is_prepared_once_is_no_cost_and_what_is_prepared_always_is() {
        let mut costs = CostModel::default();
        costs.record_step(1, 100, 1.0);
        for _ in 0..3 {
            costs.record_cold_step(4, 100, 9.0);
            costs.record_cold_round(DraftKind::SelfDraft, 1, 100, 9.0);
        }
        assert!(costs.step(4, 100) < 1.5 && costs.most_rows(100) > 4);
        assert!(costs.round(DraftKind::SelfDraft, 1, 100) < 0.1);
        for _ in 0..3 {
            costs.record_cold_step(4, 100, 9.0);
            costs.record_cold_round(DraftKind::SelfDraft, 1, 100, 3.0);
        }
        assert!((costs.step(4, 100) - 9.0).abs() < 1e-9);
        assert!((costs.round(DraftKind::SelfDraft, 1, 100) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn plain_steps_are_asked_for_ever_less() {
        let mut costs = CostModel::default();
        let mut plain = Vec::new();
        for step in 0..1500 {
            let refresh = costs.needs_plain_step(1, 100);
            plain.extend(refresh.then_some(step));
            costs.record_step(if refresh { 1 } else { 5 }, 100, 1.0);
        }
        assert_eq!(plain[0], 0);
        assert!((7..=9).contains(&plain.len()), "{plain:?}");
    }
}
