//! Memory, mapped files, and the limits that the system sets.

mod limits;
mod mapped;
mod rest;

use tandem_tests::Daemon;
use tandem_tests::proc::private_dirty_bytes;

/// Open descriptors of a process.
fn descriptors(daemon: &Daemon) -> usize {
    let directory = format!("/proc/{}/fd", daemon.pid());
    std::fs::read_dir(directory).unwrap().count()
}

/// Dirty memory of the daemon in MB.
fn footprint_mb(daemon: &Daemon) -> f64 {
    private_dirty_bytes(daemon.pid()) as f64 / 1e6
}
