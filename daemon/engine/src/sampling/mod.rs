//! How the next token is chosen: parameters, the processed distribution, and the draw.
//!
//! Target and draft both come through here, since verification is exact only if the drafted token was drawn from
//! precisely the distribution it is judged by. This module knows logits and tokens; it must not know models, caches
//! or drafts (a drafted prefix is just more tokens).
//!
//! Order of the transforms: penalties, bias (`history`), then temperature, top-k, top-p, min-p (`truncate`).
//! `exp` and `ln` are our own (`math`): the same logits give the same text on every platform.

mod chance;
mod distribution;
mod history;
mod leading;
mod logprobs;
mod math;
mod noise;
mod params;
mod processor;
mod row;
mod sampler;
#[cfg(test)]
mod tests;
mod truncate;
mod wide;

pub(crate) use chance::Chance;
#[cfg(test)]
pub(crate) use chance::distinct;
pub use distribution::Distribution;
pub(crate) use leading::{Leading, MOST as LEADING};
pub use logprobs::{MAX_TOP_LOGPROBS, TokenLogprobs};
pub(crate) use math::sum;
pub use params::{InvalidParam, SamplingParams};
pub(crate) use processor::Processor;
pub use row::LogitsRow;
pub(crate) use row::{KeptRow, Rest};
pub use sampler::Sampler;
pub(crate) use sampler::Source;
