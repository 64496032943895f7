//! The controller on synthetic texts and machines.

mod bound;
mod changing;
mod exactness;
mod lookup;
mod neighbours;
mod replay;
mod short_steps;
mod sim;
mod steady;
mod width;
