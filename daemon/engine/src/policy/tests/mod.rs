//! The controller on synthetic texts and machines.

mod bound;
mod changing;
mod device;
mod drafters;
mod exactness;
mod lookup;
mod machines;
mod neighbours;
mod replay;
mod session;
mod short_steps;
mod sim;
mod steady;
mod width;
