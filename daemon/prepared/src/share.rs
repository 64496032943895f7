//! Work shared out among threads that live as long as the work.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Calls `work` for every index below `count`, on `threads` threads, of which the caller's is one. `work` returns how
/// many bytes it did; `progress` is told their sum, on the caller's thread. After an error nothing new is begun.
pub(crate) fn share_out<E: Send>(
    threads: NonZeroUsize,
    count: usize,
    work: impl Fn(usize) -> Result<u64, E> + Sync,
    progress: &mut dyn FnMut(u64),
) -> Result<(), E> {
    let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
    let (failed, failure) = (AtomicBool::new(false), Mutex::new(None));
    let one = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count || failed.load(Ordering::Relaxed) {
            return false;
        }
        match work(index) {
            Ok(bytes) => {
                done.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(error) => {
                failed.store(true, Ordering::Relaxed);
                let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
            }
        }
        true
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(count) {
            let helper = std::thread::Builder::new().name("tandem-prepare".to_owned());
            // Without a helper the others do its share.
            let _ = helper.spawn_scoped(scope, || while one() {});
        }
        while one() {
            progress(done.load(Ordering::Relaxed));
        }
    });
    progress(done.load(Ordering::Relaxed));
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_once_and_the_sum_at_the_end() {
        for threads in 1..5 {
            let threads = NonZeroUsize::new(threads).unwrap();
            let seen: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let mut last = 0;
            let work = |index: usize| {
                seen[index].fetch_add(1, Ordering::Relaxed);
                Ok::<u64, ()>(index as u64)
            };
            share_out(threads, 100, work, &mut |bytes| last = bytes).unwrap();
            assert_eq!(last, 99 * 100 / 2);
            assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn the_first_error_ends_it() {
        let threads = NonZeroUsize::new(2).unwrap();
        let begun = AtomicUsize::new(0);
        let work = |index: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            if index == 3 { Err(index) } else { Ok(1) }
        };
        assert_eq!(share_out(threads, 1_000_000, work, &mut |_| {}), Err(3));
        assert!(begun.load(Ordering::Relaxed) < 1_000_000);
    }
}
