//! Threads that share the chunks of one stage. A stage costs a microsecond to start and to end while the threads are
//! awake; they spin for a moment after each, then park, and an idle pool takes no time at all.
//!
//! Chunks are claimed one by one, so that a thread which the system has put aside holds up at most the chunk it is in,
//! and cores of different speeds end together. Which thread computes a chunk must not matter to its result.

mod shared;
#[cfg(test)]
mod tests;
mod worker;

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

use shared::{CHUNK_MASK, Shared};

/// How often a thread looks again before it parks: some 40 µs on the machines at hand. Longer than the serial work between
/// two stages, so that they cost 0.7 µs; no more than a few times the 12 µs that waking a thread takes, so that other
/// programs are not robbed (`cargo bench --bench pool`).
const SPINS: u32 = 2000;

/// A fixed number of threads, the caller counted, that models on the CPU take turns to use.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Threads asked for.
    wanted: NonZeroUsize,
    /// Whether somebody's stage runs.
    busy: AtomicBool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.threads())
            .finish()
    }
}

impl Pool {
    /// Starts `threads - 1` workers, or fewer where the system refuses more.
    #[must_use]
    pub fn new(threads: NonZeroUsize) -> Self {
        Self::named("compute", threads)
    }

    /// The pool of so many threads that the models of this process share, for as long as one of them lives.
    #[must_use]
    pub fn shared(threads: NonZeroUsize) -> Arc<Self> {
        static POOLS: Mutex<Vec<Weak<Pool>>> = Mutex::new(Vec::new());
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        let mut living = pools.iter().filter_map(Weak::upgrade);
        if let Some(pool) = living.find(|pool| pool.wanted == threads) {
            return pool;
        }
        let pool = Arc::new(Self::new(threads));
        pools.push(Arc::downgrade(&pool));
        pool
    }

    /// `name` is what the system shows.
    fn named(name: &'static str, threads: NonZeroUsize) -> Self {
        let workers = threads.get() - 1;
        let shared = Arc::new(Shared::new(workers));
        let workers = (0..workers)
            .map_while(|index| worker::spawn(&shared, name, index).ok())
            .collect();
        Self {
            shared,
            workers,
            wanted: threads,
            busy: AtomicBool::new(false),
        }
    }

    /// Threads, the caller counted.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `stage` once for each of `chunks` chunks, on any of the threads, and returns when all have ended. A caller
    /// that finds another's stage running does its own alone.
    ///
    /// # Panics
    /// With the panic of a chunk, after the others have ended.
    pub fn run(&self, chunks: usize, stage: impl Fn(usize) + Sync) {
        let alone = chunks < 2 || self.workers.is_empty();
        if alone || self.busy.swap(true, Ordering::Acquire) {
            (0..chunks).for_each(stage);
            return;
        }
        let _turn = Turn(&self.busy);
        // Only absurd shapes come to more than one round.
        for start in (0..chunks).step_by(CHUNK_MASK as usize) {
            let count = (chunks - start).min(CHUNK_MASK as usize);
            self.round(count, &|chunk| stage(start + chunk));
        }
    }

    #[expect(unsafe_code, reason = "lends a closure of this stack to the workers")]
    fn round(&self, chunks: usize, stage: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        // SAFETY: `busy` admits one caller, and this function does not return or unwind before all chunks have ended:
        // `work` catches panics.
        unsafe { shared.begin(chunks, stage) };
        for (worker, parked) in self.workers.iter().zip(&shared.parked) {
            if parked.0.load(Ordering::SeqCst) && parked.0.swap(false, Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        shared.work();
        self.wait();
        if shared.panicked.swap(false, Ordering::Relaxed) {
            let mut slot = shared.panic.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(payload) = slot.take() {
                drop(slot);
                resume_unwind(payload);
            }
        }
    }

    /// Waits until all chunks have ended.
    fn wait(&self) {
        let shared = &*self.shared;
        let done = || shared.unfinished.0.load(Ordering::SeqCst) == 0;
        for _ in 0..SPINS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        *shared.caller.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(std::thread::current());
        // Announced anew before each park: a worker that ended an earlier stage and was put aside before it looked here takes
        // the announcement away when it goes on, and its wake-up is for nothing.
        loop {
            shared.caller_parked.store(true, Ordering::SeqCst);
            if done() {
                break;
            }
            std::thread::park();
        }
        shared.caller_parked.store(false, Ordering::SeqCst);
    }
}

/// The right to run a stage, until it is dropped.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches what its chunks do, so there is nothing to hear.
            let _ = worker.join();
        }
    }
}
