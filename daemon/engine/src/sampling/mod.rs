//! How the next token is chosen: parameters, the processed distribution, and the draw.

mod params;

pub use params::{InvalidParam, SamplingParams};
