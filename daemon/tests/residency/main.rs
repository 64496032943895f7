//! Residency over a real socket, in this process, with real engines on tiny models and a system that says what a test
//! tells it to: reloads, memory that gets short, idle pairs, faults.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod drafts;
mod faults;
mod idle;
mod memory;
mod refused;
mod reload;
mod saving;
mod soak;
mod streams;
mod watching;
mod world;
