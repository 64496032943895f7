//! What a stage of the thread pool costs: between stages of a step, and after a pause in which threads may have parked.
//!
//! Threads: the first argument, or two; they need as many idle cores.
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

use std::hint::spin_loop;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tandem_model::backend::cpu::Pool;

/// Median and 95th percentile of what `time` returns, in microseconds.
fn percentiles(times: usize, mut time: impl FnMut() -> Duration) -> (f64, f64) {
    let mut all: Vec<f64> = (0..times).map(|_| time().as_secs_f64() * 1e6).collect();
    all.sort_by(f64::total_cmp);
    (all[times / 2], all[times * 19 / 20])
}

fn busy(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        spin_loop();
    }
}

/// A stage in which every thread waits for all others: none can end it alone.
fn meet(pool: &Pool) -> Duration {
    let arrived = AtomicUsize::new(0);
    let start = Instant::now();
    pool.run(pool.threads(), |_| {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < pool.threads() {
            spin_loop();
        }
    });
    start.elapsed()
}

fn main() {
    let threads = std::env::args().find_map(|argument| argument.parse().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN.saturating_add(1));
    let pool = Pool::new(threads);
    let report = |what: &str, (median, late): (f64, f64)| {
        println!("{what:<44} median {median:8.2} µs, 95 % {late:8.2} µs");
    };
    report("all threads meet", percentiles(20_000, || meet(&pool)));
    let chunks = 4 * pool.threads();
    let empty = || {
        let start = Instant::now();
        pool.run(chunks, |_| {});
        start.elapsed()
    };
    report("four empty chunks a thread", percentiles(20_000, empty));
    for pause in [1, 3, 10, 30, 60, 100, 200, 500, 2000] {
        let after = || {
            busy(Duration::from_micros(pause));
            meet(&pool)
        };
        let what = format!("all threads meet after {pause} µs of serial work");
        report(&what, percentiles(1000, after));
    }
}
