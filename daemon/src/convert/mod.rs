//! Wire messages to engine types, with every field checked, and back.
//!
//! Knows what a field may hold; must not know which pairs exist or what they are doing.

mod request;
mod residency;
mod response;
mod sampling;
mod speculation;

pub(crate) use request::{History, Input, Plan, Speculation};
pub(crate) use residency::{keep_alive, load_progress, memory_stage, pressure};
pub(crate) use response::{chunk, complete, count, duration};
pub(crate) use speculation::{draft_methods, pair_speculation, step_costs};
