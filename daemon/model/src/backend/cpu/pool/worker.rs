//! The life of one worker: look for chunks, spin for a moment, park.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::SPINS;
use super::shared::{CHUNK_MASK, Shared};

/// Starts the worker of that index.
pub(super) fn spawn(shared: &Arc<Shared>, name: &str, index: usize) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(format!("{name}-{}", index + 1))
        .spawn(move || live(&shared, index))
}

fn live(shared: &Shared, index: usize) {
    let claimable = || shared.state.0.load(Ordering::SeqCst) & CHUNK_MASK != 0;
    let stopped = || shared.stop.load(Ordering::SeqCst);
    while !stopped() {
        shared.work();
        let mut spins = 0;
        while spins < SPINS && !claimable() && !stopped() {
            std::hint::spin_loop();
            spins += 1;
        }
        if claimable() {
            continue;
        }
        // Announced before the last look, so that a stage begun in between either is seen or sees it.
        let parked = &shared.parked[index].0;
        parked.store(true, Ordering::SeqCst);
        while parked.load(Ordering::SeqCst) && !claimable() && !stopped() {
            std::thread::park();
        }
        parked.store(false, Ordering::SeqCst);
    }
}
