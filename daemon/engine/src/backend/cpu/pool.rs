//! Threads that share the chunks of one stage. A stage costs a microsecond to start and to end while the threads are
//! awake; they spin for a moment after each, then park, and an idle pool takes no time at all.
//!
//! Chunks are claimed one by one, so that a thread which the system has put aside holds up at most the chunk it is in,
//! and cores of different speeds end together. Which thread computes a chunk must not matter to its result.

#[cfg(test)]
mod tests;
mod worker;

use std::any::Any;
use std::cell::UnsafeCell;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

/// How often a thread looks again before it parks: some tens of microseconds, longer than the serial work between
/// two stages and short enough not to rob other programs.
const SPINS: u32 = 2000;
/// Bits of `state` that count unclaimed chunks; the rest number the stages.
const CHUNK_BITS: u32 = 16;
const CHUNK_MASK: u64 = (1 << CHUNK_BITS) - 1;

/// What a stage does, once its lifetime is erased: called with the index of a chunk.
type Stage = dyn Fn(usize) + Sync + 'static;

/// Keeps what different threads write on different cache lines.
#[repr(align(128))]
struct Padded<T>(T);

/// What the threads share.
struct Shared {
    /// Number of the stage and how many of its chunks nobody has claimed.
    state: Padded<AtomicU64>,
    /// Chunks that have not ended.
    unfinished: Padded<AtomicUsize>,
    /// The stage; written only while no chunk is unfinished, read only between claiming a chunk and ending it.
    stage: UnsafeCell<Option<*const Stage>>,
    /// The first panic of the stage.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    panicked: AtomicBool,
    /// Whether the caller has parked, and who it is.
    caller_parked: AtomicBool,
    caller: Mutex<Option<Thread>>,
    /// Whether each worker has parked.
    parked: Box<[Padded<AtomicBool>]>,
    stop: AtomicBool,
}

#[expect(
    unsafe_code,
    reason = "the stage is handed over under the protocol of `state` and `unfinished`"
)]
// SAFETY: everything but `stage` is Sync by itself. `stage` points to a `Sync` closure, is written by the caller that `busy` admits
// while `unfinished` is zero, and is read only by threads that hold a claimed chunk, which keeps `unfinished` above
// zero; claim and end are acquire and release operations, so that writes and reads never overlap.
unsafe impl Sync for Shared {}
#[expect(unsafe_code, reason = "see Sync")]
// SAFETY: as for Sync; the pointer is only ever followed as a shared reference to a `Sync` closure.
unsafe impl Send for Shared {}

impl Shared {
    fn new(workers: usize) -> Self {
        Self {
            state: Padded(AtomicU64::new(0)),
            unfinished: Padded(AtomicUsize::new(0)),
            stage: UnsafeCell::new(None),
            panic: Mutex::new(None),
            panicked: AtomicBool::new(false),
            caller_parked: AtomicBool::new(false),
            caller: Mutex::new(None),
            parked: (0..workers)
                .map(|_| Padded(AtomicBool::new(false)))
                .collect(),
            stop: AtomicBool::new(false),
        }
    }

    /// Claims a chunk, where one is left.
    fn claim(&self) -> Option<usize> {
        let mut state = self.state.0.load(Ordering::Acquire);
        loop {
            if state & CHUNK_MASK == 0 {
                return None;
            }
            match self.state.0.compare_exchange_weak(
                state,
                state - 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some((state & CHUNK_MASK) as usize - 1),
                Err(now) => state = now,
            }
        }
    }

    /// Claims and runs chunks until none is left. A panic is kept for the caller.
    fn work(&self) {
        while let Some(chunk) = self.claim() {
            // After a panic the rest is only counted off.
            if !self.panicked.load(Ordering::Relaxed) {
                let result = catch_unwind(AssertUnwindSafe(|| self.run_chunk(chunk)));
                if let Err(payload) = result {
                    let mut slot = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    slot.get_or_insert(payload);
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
            // The last one ends the stage; SeqCst orders it against the caller's decision to park.
            if self.unfinished.0.fetch_sub(1, Ordering::SeqCst) == 1
                && self.caller_parked.swap(false, Ordering::SeqCst)
            {
                let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(caller) = caller.as_ref() {
                    caller.unpark();
                }
            }
        }
    }

    #[expect(unsafe_code, reason = "the stage outlives its chunks")]
    fn run_chunk(&self, chunk: usize) {
        // SAFETY: the chunk was claimed and has not ended, so the caller waits inside `run`, which keeps the closure
        // alive and does not write `stage`.
        let stage = unsafe { (*self.stage.get()).map(|stage| &*stage) };
        stage.expect("a stage is set before its chunks")(chunk);
    }
}

/// A fixed number of threads, the caller counted, that models on the CPU take turns to use.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
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

    /// `name` is what the system shows.
    fn named(name: &'static str, threads: NonZeroUsize) -> Self {
        let wanted = threads.get() - 1;
        let shared = Arc::new(Shared::new(wanted));
        let workers = (0..wanted)
            .map_while(|index| worker::spawn(&shared, name, index).ok())
            .collect();
        Self {
            shared,
            workers,
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
        // SAFETY: only the lifetime changes. The pointer is followed only by threads that hold a chunk of this round,
        // and this function does not return or unwind before all chunks have ended: it catches panics.
        let stage =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const Stage>(stage) };
        // SAFETY: no chunk is unfinished between rounds, so no worker reads; and `busy` admits one caller.
        unsafe { *shared.stage.get() = Some(stage) };
        shared.unfinished.0.store(chunks, Ordering::Relaxed);
        let number = (shared.state.0.load(Ordering::Relaxed) >> CHUNK_BITS).wrapping_add(1);
        // SeqCst orders it against the workers' decisions to park.
        shared
            .state
            .0
            .store(number << CHUNK_BITS | chunks as u64, Ordering::SeqCst);
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
        shared.caller_parked.store(true, Ordering::SeqCst);
        while !done() {
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
