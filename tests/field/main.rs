//! What people report of services like this one must not happen here. One file per kind of accident; `docs/field.md` lists
//! the kinds, and names for each the test that holds it, here or beside the code.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod drill;
mod files;
mod life;
mod limits;
#[cfg(target_os = "linux")]
mod memory;
mod says;
mod templates;
mod terminal;

use serde_json::Value;
use tandem_tests::{Daemon, Home, models};

/// The command under test, which cargo has built from these sources.
const TANDEM: &str = env!("CARGO_BIN_EXE_tandem");

/// An empty home; the default pair is on this machine.
fn home() -> Home {
    models::default_pair();
    Home::new(TANDEM)
}

/// A daemon without a config file, as after installation.
async fn default_daemon() -> Daemon {
    home().start().await
}

/// The status as scripts see it.
fn status_json(daemon: &Daemon) -> Value {
    let output = daemon.tandem(&["status", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
