//! A platform whose memory pressure is read from a file, for places where the system speaks of others: a container on a
//! shared machine, whose own stalls are told elsewhere, and tests.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{KeepAwake, OnPressure, Platform, Pressure, PressureWatch, poll, psi};

/// How often the file is read. Not every file that one may name tells of its changes; those of control groups do not.
const POLL: Duration = Duration::from_secs(2);

/// All that another platform says but the pressure, which a file says in the format of `/proc/pressure/memory`.
#[derive(Debug)]
pub(super) struct ToldByFile {
    pub(super) platform: Arc<dyn Platform>,
    pub(super) path: PathBuf,
}

impl Platform for ToldByFile {
    fn footprint(&self) -> io::Result<u64> {
        self.platform.footprint()
    }

    fn physical_memory(&self) -> io::Result<u64> {
        self.platform.physical_memory()
    }

    fn performance_cores(&self) -> Option<usize> {
        self.platform.performance_cores()
    }

    fn recommended_working_set(&self) -> Option<u64> {
        self.platform.recommended_working_set()
    }

    fn pressure(&self) -> io::Result<Pressure> {
        psi::level(&self.path)
    }

    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch> {
        let path = self.path.clone();
        poll::watch(POLL, move || psi::level(&path), on_change)
    }

    fn give_back(&self) {
        self.platform.give_back();
    }

    fn keep_awake(&self) -> KeepAwake {
        self.platform.keep_awake()
    }
}
