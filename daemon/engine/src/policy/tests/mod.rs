//! The controller on synthetic texts and machines.

mod bound;
mod changing;
mod debug;
mod sim;
mod steady;
