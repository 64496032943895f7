//! Measured time by number of rows.

/// Row counts that are told apart; beyond, costs are extrapolated.
pub(super) const ROWS: usize = 64;
/// Rows that kernels take together: costs jump from one group to the next.
pub(super) const GROUP: usize = 8;
/// Weight of the newest measurement, once there are several.
const WEIGHT: f64 = 0.2;
/// One measurement changes an estimate by at most this factor upwards, and its square downwards: what disturbs a step
/// makes it slower.
const CLAMP: f64 = 1.25;
/// Measurements after which a row count's changes are drift.
const SETTLED: u32 = 8;
/// Measurements of other row counts after which one follows them.
const STALE: u32 = 2;
/// Measurements of others after which a row count that was measured once or twice is tried afresh: that may have been a
/// disturbance.
const FORGOTTEN: u32 = 512;
/// What another row is taken to cost, in steps of one row, before several row counts were measured.
const PRIOR_SLOPE: f64 = 0.1;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    seconds: f64,
    count: u32,
    /// The curve's clock at the last measurement.
    stamp: u32,
}

/// Seconds of a forward by its rows.
///
/// Each measured row count has a moving average; the curve through them is the non-decreasing one closest to them, since
/// rows never save time. Row counts that were not measured lately move with those that are, so that a machine that slows
/// down is not taken for a worse draft.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    cells: [Cell; ROWS + 1],
    fitted: [f64; ROWS + 1],
    /// Cost of each row beyond the measured ones.
    slope: f64,
    clock: u32,
    /// The largest row count that was run, measured or not.
    reached: usize,
}

impl Curve {
    pub(super) fn new() -> Self {
        Self {
            cells: [Cell::default(); ROWS + 1],
            fitted: [0.0; ROWS + 1],
            slope: 0.0,
            clock: 0,
            reached: 0,
        }
    }

    /// Notes that `rows` rows were run in a time that says nothing of the next.
    pub(super) fn touch(&mut self, rows: usize) {
        self.reached = self.reached.max(rows);
        self.clock += 1;
        if let Some(cell) = self.cells.get_mut(rows) {
            cell.stamp = self.clock;
        }
    }

    /// Seconds of `rows` rows; 0 while nothing was measured.
    pub(super) fn at(&self, rows: usize) -> f64 {
        let beyond = rows.saturating_sub(ROWS) as f64;
        self.fitted[rows.min(ROWS)] + beyond * self.slope
    }

    /// Measurements of `rows` rows, and how many others were taken since the last.
    pub(super) fn age(&self, rows: usize) -> (u32, u32) {
        let cell = self.cells.get(rows).copied().unwrap_or_default();
        (cell.count, self.clock - cell.stamp)
    }

    /// The largest row count that was run; 0 while nothing was.
    pub(super) fn frontier(&self) -> usize {
        let measured = self.cells.iter().rposition(|cell| cell.count > 0);
        self.reached.max(measured.unwrap_or(0))
    }

    /// The row counts that were measured: rows, seconds and measurements.
    pub(super) fn measured(&self) -> impl Iterator<Item = (usize, f64, u32)> {
        let cells = self.cells.iter().enumerate();
        cells
            .filter(|(_, cell)| cell.count > 0)
            .map(|(rows, cell)| (rows, cell.seconds, cell.count))
    }

    /// Takes a measurement, with a share of its weight in 0..=1.
    pub(super) fn record(&mut self, rows: usize, seconds: f64, share: f64) {
        if rows == 0 || rows > ROWS || !seconds.is_finite() || seconds <= 0.0 {
            return;
        }
        self.clock += 1;
        for cell in &mut self.cells {
            if cell.count < 3 && self.clock - cell.stamp > FORGOTTEN {
                *cell = Cell::default();
            }
        }
        let cell = &mut self.cells[rows];
        let old = cell.seconds;
        (cell.count, cell.stamp) = (cell.count.saturating_add(1), self.clock);
        cell.seconds = match cell.count {
            1 => seconds,
            // A first measurement may have met cold caches and unmapped weights; the smallest of three did not.
            2 | 3 => old.min(seconds),
            _ => old + share * WEIGHT * (seconds.clamp(old / (CLAMP * CLAMP), old * CLAMP) - old),
        };
        if cell.count > SETTLED {
            let drift = cell.seconds / old;
            let clock = self.clock;
            for cell in &mut self.cells {
                if cell.count > 0 && clock - cell.stamp > STALE {
                    cell.seconds *= drift;
                }
            }
        }
        self.fit();
    }

    /// Draws the curve: pools neighbours that are in the wrong order, then interpolates and extrapolates.
    fn fit(&mut self) {
        // Blocks of pooled row counts: first and last row, mean, weight.
        let mut blocks = [(0, 0, 0.0, 0.0); ROWS];
        let mut used = 0;
        for (rows, cell) in self
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| cell.count > 0)
        {
            let mut block = (rows, rows, cell.seconds, f64::from(cell.count.min(SETTLED)));
            while used > 0 && blocks[used - 1].2 > block.2 {
                let (first, _, mean, weight) = blocks[used - 1];
                let both = weight + block.3;
                block = (
                    first,
                    block.1,
                    (mean * weight + block.2 * block.3) / both,
                    both,
                );
                used -= 1;
            }
            blocks[used] = block;
            used += 1;
        }
        let blocks = &blocks[..used];
        let (Some(&(first, _, low, _)), Some(&(_, last, high, _))) =
            (blocks.first(), blocks.last())
        else {
            return;
        };
        // Below the first measured row count, the prior's slope.
        let one = low / (1.0 + PRIOR_SLOPE * (first - 1) as f64);
        self.slope = if last > first {
            (high - low) / (last - first) as f64
        } else {
            PRIOR_SLOPE * one
        };
        let (mut before, mut before_seconds) = (1_usize, one);
        for &(from, to, seconds, _) in blocks {
            // Costs jump where kernels take rows in chunks. Until it is measured, a row count below a jump is taken to lie
            // below it: that is soon put right, and a length that was never tried is not.
            let slope = match before.saturating_sub(first) {
                0 => PRIOR_SLOPE * one,
                rows => (before_seconds - low) / rows as f64,
            };
            for rows in before..from {
                let part = (rows - before) as f64 / (from - before) as f64;
                let between = before_seconds + part * (seconds - before_seconds);
                let below = before_seconds + (rows - before) as f64 * slope;
                let least = between.min(below);
                // Behind the jump to the measured one's group, however often nobody stops there.
                let group = from.div_ceil(GROUP);
                let behind = before.div_ceil(GROUP) < group && rows.div_ceil(GROUP) == group;
                self.fitted[rows] = match behind {
                    true => least.max(seconds - (from - rows) as f64 * slope),
                    false => least,
                };
            }
            self.fitted[from..=to].fill(seconds);
            (before, before_seconds) = (to, seconds);
        }
        for rows in before..=ROWS {
            self.fitted[rows] = before_seconds + (rows - before) as f64 * self.slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(points: &[(usize, f64)]) -> Curve {
        let mut curve = Curve::new();
        for _ in 0..50 {
            points
                .iter()
                .for_each(|&(rows, seconds)| curve.record(rows, seconds, 1.0));
        }
        curve
    }

    #[test]
    fn unmeasured_row_counts_lie_between_and_beyond_measured_ones() {
        let curve = measured(&[(1, 1.0), (5, 3.0)]);
        // Not 2, which a straight line says: as far as is known, rows cost little before they cost much.
        assert!((curve.at(3) - 1.2).abs() < 1e-9);
        let curve = measured(&[(1, 1.0), (3, 1.4), (7, 1.6)]);
        assert!((curve.at(5) - 1.5).abs() < 1e-9);
        let curve = measured(&[(1, 1.0), (5, 3.0)]);
        assert!((curve.at(7) - 4.0).abs() < 1e-9);
        assert!((curve.at(100) - 50.5).abs() < 1e-9);
        assert!((measured(&[(3, 1.2)]).at(1) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rows_that_are_taken_with_measured_ones_cost_what_these_do() {
        // 9 to 12 rows are taken together with 13, and 8 are not.
        let curve = measured(&[(1, 1.0), (8, 1.07), (13, 1.5)]);
        assert!((curve.at(9) - 1.46).abs() < 1e-9 && (curve.at(7) - 1.06).abs() < 1e-9);
        // A group between them that nobody tried is not taken to lie behind the jump.
        let curve = measured(&[(1, 1.0), (8, 1.07), (24, 1.8)]);
        assert!((curve.at(16) - 1.15).abs() < 1e-9 && (curve.at(17) - 1.73).abs() < 1e-9);
    }

    #[test]
    fn more_rows_never_cost_less() {
        let curve = measured(&[(1, 1.0), (2, 1.5), (3, 1.3), (4, 1.1), (8, 2.0)]);
        assert!((1..=70).all(|rows| curve.at(rows) <= curve.at(rows + 1)));
        assert!((curve.at(3) - 1.3).abs() < 1e-9, "{}", curve.at(3));
        // First steep and then hardly at all, with a group in between.
        let curve = measured(&[(1, 1.0), (8, 1.8), (24, 2.0)]);
        assert!((1..=70).all(|rows| curve.at(rows) <= curve.at(rows + 1)));
    }

    #[test]
    fn an_outlier_moves_little() {
        let mut curve = measured(&[(1, 1.0)]);
        curve.record(1, 100.0, 1.0);
        assert!(curve.at(1) < 1.06);
        let mut cold = Curve::new();
        [9.0, 1.0, 1.1]
            .into_iter()
            .for_each(|seconds| cold.record(1, seconds, 1.0));
        assert!((cold.at(1) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_row_count_not_seen_lately_follows_the_drift_of_others() {
        let mut curve = measured(&[(1, 1.0), (4, 1.2)]);
        for _ in 0..60 {
            curve.record(4, 2.4, 1.0);
        }
        assert!(curve.at(1) > 1.7, "{}", curve.at(1));
        for _ in 0..60 {
            curve.record(1, 2.0, 1.0);
        }
        assert!((curve.at(1) - 2.0).abs() < 0.01 && (curve.at(4) - 2.4).abs() < 0.2);
    }
}
