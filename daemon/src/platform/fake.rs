//! A platform that reads what a test wrote.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Platform;

/// Returns settable readings.
#[derive(Debug)]
pub struct FakePlatform {
    /// The footprint to report, in bytes.
    pub footprint: AtomicU64,
    /// The physical memory to report, in bytes.
    pub physical_memory: AtomicU64,
}

impl Platform for FakePlatform {
    fn footprint(&self) -> io::Result<u64> {
        Ok(self.footprint.load(Ordering::Relaxed))
    }

    fn physical_memory(&self) -> io::Result<u64> {
        Ok(self.physical_memory.load(Ordering::Relaxed))
    }

    fn performance_cores(&self) -> Option<usize> {
        None
    }
}
