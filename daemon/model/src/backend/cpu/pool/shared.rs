//! The protocol by which threads find, share and end the chunks of a stage.

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;

/// Bits of `state` that count unclaimed chunks; the rest number the stages.
const CHUNK_BITS: u32 = 16;
pub(super) const CHUNK_MASK: u64 = (1 << CHUNK_BITS) - 1;

/// What a stage does, once its lifetime is erased: called with the index of a chunk.
type Stage = dyn Fn(usize) + Sync + 'static;

/// Keeps what different threads write on different cache lines.
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// What the threads share.
pub(super) struct Shared {
    /// Number of the stage and how many of its chunks nobody has claimed.
    pub(super) state: Padded<AtomicU64>,
    /// Chunks that have not ended.
    pub(super) unfinished: Padded<AtomicUsize>,
    /// The stage; written only while no chunk is unfinished, read only between claiming a chunk and ending it.
    stage: UnsafeCell<Option<*const Stage>>,
    /// The first panic of the stage.
    pub(super) panic: Mutex<Option<Box<dyn Any + Send>>>,
    pub(super) panicked: AtomicBool,
    /// Whether the caller has parked, and who it is.
    pub(super) caller_parked: AtomicBool,
    pub(super) caller: Mutex<Option<Thread>>,
    /// Whether each worker has parked.
    pub(super) parked: Box<[Padded<AtomicBool>]>,
    pub(super) stop: AtomicBool,
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
    pub(super) fn new(workers: usize) -> Self {
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

    /// Sets a stage whose chunks are to be claimed.
    ///
    /// # Safety
    /// One thread at a time calls it, when no chunk of another stage is unfinished, and keeps `stage` until all chunks
    /// have ended.
    #[expect(
        unsafe_code,
        reason = "lends a closure of the caller's stack to the workers"
    )]
    pub(super) unsafe fn begin(&self, chunks: usize, stage: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes. The pointer is followed only by threads that hold a chunk of this round,
        // and the caller does not return before all chunks have ended.
        let stage =
            unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const Stage>(stage) };
        // SAFETY: no chunk is unfinished between rounds, so no worker reads; and one caller has the turn.
        unsafe { *self.stage.get() = Some(stage) };
        self.unfinished.0.store(chunks, Ordering::Relaxed);
        let number = (self.state.0.load(Ordering::Relaxed) >> CHUNK_BITS).wrapping_add(1);
        // SeqCst orders it against the workers' decisions to park.
        self.state
            .0
            .store(number << CHUNK_BITS | chunks as u64, Ordering::SeqCst);
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
    pub(super) fn work(&self) {
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
            if self.unfinished.0.fetch_sub(1, Ordering::SeqCst) != 1 {
                continue;
            }
            #[cfg(test)]
            super::tests::put_aside();
            if self.caller_parked.swap(false, Ordering::SeqCst) {
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
