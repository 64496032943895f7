//! How fast the cores read memory. A step of plain decoding reads every weight once, so this bounds its speed.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::{Finding, of};

/// What all threads read of, in bytes: more than usual caches hold.
const BYTES: usize = 256 << 20;
const TIME: Duration = Duration::from_millis(400);
const WORD: usize = size_of::<u64>();

pub(super) fn check(threads: NonZeroUsize) -> Finding {
    let rate = measure(threads, BYTES, TIME) / 1e9;
    let gigabyte_seconds = 1.0 / rate.max(1e-9);
    of("machine", "bandwidth")
        .ok(format!(
            "{rate:.1} GB/s read by {threads} threads: a step of plain decoding takes at least {:.1} ms per GB of weights",
            gigabyte_seconds * 1e3
        ))
        .value("gigabytes_per_second", rate)
        .value("threads", threads.get())
}

/// Bytes per second that the threads read together, each going over its own part of `bytes` bytes for so long.
fn measure(threads: NonZeroUsize, bytes: usize, time: Duration) -> f64 {
    let words = (bytes / threads.get() / WORD).max(1);
    let barrier = Barrier::new(threads.get());
    let read = || {
        let part = vec![1u64; words];
        barrier.wait();
        let (begun, mut passes) = (Instant::now(), 0u32);
        loop {
            black_box(sum(black_box(&part)));
            passes += 1;
            let took = begun.elapsed();
            if took >= time {
                return f64::from(passes) * (words * WORD) as f64 / took.as_secs_f64();
            }
        }
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads.get()).map(|_| scope.spawn(read)).collect();
        let rates = readers.into_iter().map(std::thread::ScopedJoinHandle::join);
        rates.map(|rate| rate.unwrap_or(0.0)).sum()
    })
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_reads() {
        for threads in [1, 3] {
            let threads = NonZeroUsize::new(threads).unwrap();
            assert!(measure(threads, 1 << 20, Duration::from_millis(1)) > 0.0);
        }
    }
}
