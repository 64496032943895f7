//! Open trees on the device under test: grown row by row, computed early and resumed, kept, cut and forked, always to the bit
//! as if computed from scratch.

mod adapter;
#[path = "../common/mod.rs"]
mod common;
mod early;
mod grow;
mod machine;
mod world;
