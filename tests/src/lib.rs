//! Harness of the end-to-end tests in `e2e/`.
//!
//! Owns a daemon's process, its directory, and the ways to look at it from outside: the socket, the log, the command
//! line, the system's own accounts. Must not know how the daemon works inside: it links neither daemon nor engine.
//!
//! Everything here panics with a sentence when something is wrong: it runs in tests only.
#![expect(
    clippy::missing_panics_doc,
    reason = "the line above says it once for all"
)]

mod daemon;
pub mod gguf;
pub mod grpc;
mod home;
pub mod models;
#[cfg(target_os = "linux")]
pub mod proc;
pub mod rewrite;
mod wait;

pub use daemon::Daemon;
pub use home::Home;
pub use wait::{LIMIT, eventually};
