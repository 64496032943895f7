//! Measured time by number of rows and by length of the contexts.

use super::curve::{Curve, ROWS};

/// Attended positions of the first bucket; each further one has twice as many.
const FIRST_POSITIONS: f64 = 256.0;
/// Buckets: up to a million positions.
const BUCKETS: usize = 13;
/// A bucket whose share of a measurement is smaller learns nothing from it.
const LEAST_SHARE: f64 = 0.1;
/// Measurements of a number of rows in a row that may be cold before that is taken for how it always is.
const PATIENCE: u8 = 4;

/// Time by rows and attended positions: curves at powers of two of the positions, linear between them.
#[derive(Clone, Debug)]
pub(super) struct Surface {
    buckets: [Option<Box<Curve>>; BUCKETS],
    /// Cold measurements of each number of rows since the last one that was not.
    colds: [u8; ROWS + 1],
}

impl Default for Surface {
    fn default() -> Self {
        Self {
            buckets: Default::default(),
            colds: [0; ROWS + 1],
        }
    }
}

/// The two buckets around so many positions, and the second one's share.
fn locate(positions: usize) -> (usize, f64) {
    let scaled = (positions as f64 / FIRST_POSITIONS).max(1.0);
    let bucket = (scaled.log2().floor() as usize).min(BUCKETS - 2);
    (bucket, (scaled / 2f64.powi(bucket as i32) - 1.0).min(1.0))
}

impl Surface {
    fn nearest(&self, bucket: usize) -> Option<&Curve> {
        let known = (0..BUCKETS).filter(|&other| self.buckets[other].is_some());
        let nearest = known.min_by_key(|&other| other.abs_diff(bucket))?;
        self.buckets[nearest].as_deref()
    }

    pub(super) fn at(&self, rows: usize, positions: usize) -> Option<f64> {
        let (bucket, share) = locate(positions);
        let (low, high) = (self.nearest(bucket)?, self.nearest(bucket + 1)?);
        Some((1.0 - share) * low.at(rows) + share * high.at(rows))
    }

    /// Takes a measurement.
    pub(super) fn record_settled(&mut self, rows: usize, positions: usize, seconds: f64) {
        self.colds[rows.min(ROWS)] = 0;
        self.record(rows, positions, seconds);
    }

    fn record(&mut self, rows: usize, positions: usize, seconds: f64) {
        let estimate = self.at(rows, positions);
        let (bucket, share) = locate(positions);
        for (bucket, share) in [(bucket, 1.0 - share), (bucket + 1, share)] {
            if share < LEAST_SHARE {
                continue;
            }
            if self.buckets[bucket].is_none() {
                // What is known of shorter or longer contexts is a better start than nothing.
                let start = self.nearest(bucket).cloned().unwrap_or_else(Curve::new);
                self.buckets[bucket] = Some(Box::new(start));
            }
            if let Some(curve) = &mut self.buckets[bucket] {
                // Both ends of the line are off by the factor by which their mixture is.
                let measured =
                    estimate.map_or(seconds, |estimate| curve.at(rows) * seconds / estimate);
                curve.record(rows, measured, (2.0 * share).min(1.0));
            }
        }
    }

    /// Takes a measurement during which the device prepared something: it counts only where that is how it always is.
    pub(super) fn record_cold(&mut self, rows: usize, positions: usize, seconds: f64) {
        let colds = &mut self.colds[rows.min(ROWS)];
        if *colds >= PATIENCE {
            self.record(rows, positions, seconds);
            return;
        }
        *colds += 1;
        let (bucket, share) = locate(positions);
        for (bucket, share) in [(bucket, 1.0 - share), (bucket + 1, share)] {
            if let Some(curve) = self.buckets[bucket]
                .as_mut()
                .filter(|_| share >= LEAST_SHARE)
            {
                curve.touch(rows);
            }
        }
    }

    pub(super) fn frontier(&self, positions: usize) -> usize {
        let (bucket, _) = locate(positions);
        self.nearest(bucket).map_or(0, Curve::frontier)
    }

    pub(super) fn age(&self, rows: usize, positions: usize) -> (u32, u32) {
        let (bucket, share) = locate(positions);
        let bucket = if share > 0.5 { bucket + 1 } else { bucket };
        self.nearest(bucket).map_or((0, 0), |curve| curve.age(rows))
    }

    /// What was measured: positions, rows, seconds and samples, by positions, then by rows.
    pub(super) fn measured(&self) -> impl Iterator<Item = (usize, usize, f64, u32)> {
        let curves = self.buckets.iter().enumerate();
        let known = curves.filter_map(|(bucket, curve)| Some((bucket, curve.as_deref()?)));
        known.flat_map(|(bucket, curve)| {
            let positions = (FIRST_POSITIONS * 2f64.powi(bucket as i32)) as usize;
            curve
                .measured()
                .map(move |(rows, seconds, samples)| (positions, rows, seconds, samples))
        })
    }
}
