//! What the benches share: the machine's read bandwidth, and a table of what criterion measured.
#![allow(dead_code, reason = "each bench uses its own part")]
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Threads to measure with: `TANDEM_BENCH_THREADS`, or as many as the process may use.
pub(crate) fn threads() -> usize {
    let named = std::env::var("TANDEM_BENCH_THREADS").ok();
    let named = named.map(|n| n.parse().expect("TANDEM_BENCH_THREADS is a number above 0"));
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    named.unwrap_or_else(all).get()
}

/// Bytes per second that `threads` threads read from memory together: the best of some passes over a gigabyte, which
/// no cache holds for long.
pub(crate) fn read_bandwidth(threads: usize) -> f64 {
    let words: Vec<u64> = (0..1 << 27).collect();
    let pass = || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for part in words.chunks(words.len().div_ceil(threads)) {
                scope.spawn(move || {
                    let sums = part.chunks_exact(32).fold([0u64; 32], |mut sums, words| {
                        sums.iter_mut()
                            .zip(words)
                            .for_each(|(sum, word)| *sum ^= word);
                        sums
                    });
                    black_box(sums)
                });
            }
        });
        size_of_val(words.as_slice()) as f64 / start.elapsed().as_secs_f64()
    };
    (0..7).map(|_| pass()).fold(0.0, f64::max)
}

/// Times of one case, gathered while criterion samples it.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<Vec<f64>>);

impl Times {
    /// Runs `f` as often as criterion asks for, and keeps how long one run took.
    pub(crate) fn take(&self, iterations: u64, mut f: impl FnMut() -> Duration) -> Duration {
        let total: Duration = (0..iterations).map(|_| f()).sum();
        let mut times = self.0.lock().expect("no bench panics");
        times.push(total.as_secs_f64() / iterations as f64);
        total
    }

    /// Seconds of the median run; `None` where the case was filtered out.
    pub(crate) fn median(&self) -> Option<f64> {
        let mut times = self.0.lock().expect("no bench panics");
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

/// Prints what m rows cost against one, with the share of the bandwidth that the weights took.
pub(crate) fn report(
    name: &str,
    bytes: usize,
    weights: usize,
    bandwidth: f64,
    cases: &[(usize, Times)],
) {
    let medians: Vec<(usize, f64)> = cases
        .iter()
        .filter_map(|(rows, times)| times.median().map(|seconds| (*rows, seconds)))
        .collect();
    let Some(&(_, one)) = medians.iter().find(|(rows, _)| *rows == 1) else {
        return;
    };
    println!("\n{name}: {:.0} MB of weights", bytes as f64 / 1e6);
    println!(
        "{:>6} {:>7} {:>9} {:>7} {:>6} {:>7}",
        "rows", "C(m)", "ms", "GB/s", "of max", "GOP/s"
    );
    for (rows, seconds) in medians {
        let read = bytes as f64 / seconds;
        println!(
            "{rows:>6} {:>7.2} {:>9.3} {:>7.1} {:>5.0}% {:>7.0}",
            seconds / one,
            1e3 * seconds,
            read / 1e9,
            1e2 * read / bandwidth,
            2.0 * (weights * rows) as f64 / seconds / 1e9,
        );
    }
}
