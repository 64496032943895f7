//! Memory, mapped files, and the limits that the system sets.

mod limits;
mod mapped;
mod rest;

use serde_json::Value;
use tandem_tests::Daemon;
use tandem_tests::proc::private_dirty_bytes;

/// The status as scripts see it.
pub(crate) fn status_json(daemon: &Daemon) -> Value {
    let output = daemon.tandem(&["status", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Open descriptors of a process.
fn descriptors(daemon: &Daemon) -> usize {
    let directory = format!("/proc/{}/fd", daemon.pid());
    std::fs::read_dir(directory).unwrap().count()
}

/// Dirty memory of the daemon in MB.
fn footprint_mb(daemon: &Daemon) -> f64 {
    private_dirty_bytes(daemon.pid()) as f64 / 1e6
}
