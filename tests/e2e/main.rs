//! A real daemon, the default pair, a real socket. One file per question; the harness is the package `tandem-tests`.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

#[cfg(target_os = "linux")]
mod activation;
mod bench;
mod cancel;
mod cli;
mod config;
mod doctor;
mod drafters;
mod errors;
mod files;
#[cfg(target_os = "linux")]
mod foreign;
#[cfg(target_os = "linux")]
mod idle;
mod latency;
mod lifecycle;
#[cfg(target_os = "linux")]
mod limits;
mod many;
mod node;
mod prepared;
mod python;
mod residency;
#[cfg(target_os = "linux")]
mod service;
mod status;
mod stream;

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
