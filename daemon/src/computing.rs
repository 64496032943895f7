//! Making tokens and texts: work that may take long, for callers that may be gone before it is done.
//!
//! It runs off the threads that serve connections, few at a time, so that what it takes of memory is bounded, and hears of
//! it when nobody waits any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Semaphore;
use tonic::Status;

use crate::errors;
use crate::service::blocking;

/// Longest input in bytes that goes past those that take long: some milliseconds of work.
const SHORT: usize = 64 << 10;
const SHORT_AT_ONCE: usize = 8;
const LONG_AT_ONCE: usize = 2;

/// Who may compute.
#[derive(Debug)]
pub(crate) struct Computing {
    short: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl Default for Computing {
    fn default() -> Self {
        Self {
            short: Arc::new(Semaphore::new(SHORT_AT_ONCE)),
            long: Arc::new(Semaphore::new(LONG_AT_ONCE)),
        }
    }
}

/// Says so to whoever computes when nobody waits any more.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Computing {
    /// Computes on an input of so many bytes. What `work` is given says whether to stop; it does once the future that this
    /// returns was dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, Status> {
        let places = if bytes <= SHORT {
            &self.short
        } else {
            &self.long
        };
        let place = Arc::clone(places).acquire_owned().await;
        let place = place.map_err(|_| errors::internal("no more work is taken"))?;
        let waiting = Waiting(Arc::default());
        let gone = Arc::clone(&waiting.0);
        let done = blocking(move || {
            // Given back when the work is over, and not when nobody waits for it any more.
            let _place = place;
            work(&|| gone.load(Ordering::Relaxed))
        });
        let done = done.await;
        drop(waiting);
        done
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    const LONG: usize = SHORT + 1;
    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn work_is_told_when_nobody_waits_and_keeps_its_place_until_it_ends() {
        let computing = Computing::default();
        let (begun, wait_begun) = mpsc::channel();
        let mut calls = Vec::new();
        for _ in 0..LONG_AT_ONCE {
            let begun = begun.clone();
            let call = computing.run(LONG, move |stopped| {
                begun.send(()).expect("the test waits");
                while !stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            // Polled once, so that the work begins.
            let mut call = Box::pin(call);
            assert!((&mut call).now_or_never().is_none());
            wait_begun.recv_timeout(PATIENCE).expect("the work begins");
            calls.push(call);
        }
        let mut next = Box::pin(computing.run(LONG, |_| "next"));
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(computing.long.available_permits(), 0);
        // Short work does not wait behind long work.
        assert_eq!(computing.run(SHORT, |_| 7).await.expect("done"), 7);
        drop(calls);
        let next = tokio::time::timeout(PATIENCE, next).await;
        assert_eq!(next.expect("a place is free").expect("done"), "next");
    }
}
