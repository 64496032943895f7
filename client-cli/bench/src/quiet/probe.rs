//! Equal pieces of work, timed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::stats::quantile;

const PIECES: usize = 120;
/// Short beside what a scheduler gives another process at a time, long beside what the clock can tell.
const PIECE: Duration = Duration::from_micros(1500);

/// Returns how much longer the slowest tenth of equal pieces of work takes than the median, on all processors at once.
pub(super) fn unsteady() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let size = size();
    let times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores)
            .map(|_| scope.spawn(move || (0..PIECES).map(|_| piece(size)).collect::<Vec<f64>>()))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    spread(times)
}

fn spread(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    match (quantile(&times, 0.9), quantile(&times, 0.5)) {
        (Some(slow), Some(median)) if median > 0.0 => slow / median - 1.0,
        _ => 0.0,
    }
}

/// Operations that take about as long as a piece should.
fn size() -> u64 {
    let mut size = 10_000;
    while piece(size) < PIECE.as_secs_f64() && size < 1 << 40 {
        size += size / 2;
    }
    size
}

fn piece(size: u64) -> f64 {
    let began = Instant::now();
    let mut state = 1_u64;
    for _ in 0..black_box(size) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
    }
    black_box(state);
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_tenth_counts() {
        let steady = vec![1.0; 100];
        assert_eq!(spread(steady.clone()), 0.0);
        let mut rare = steady.clone();
        rare[..5].fill(9.0);
        assert_eq!(spread(rare), 0.0, "one in twenty");
        let mut often = steady;
        often[..20].fill(1.5);
        assert!((spread(often) - 0.5).abs() < 1e-9);
        assert_eq!(spread(Vec::new()), 0.0);
    }
}
