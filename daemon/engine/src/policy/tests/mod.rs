//! The controller on synthetic texts and machines.

mod sim;
mod steady;
