//! How the next token is chosen: parameters, the processed distribution, and the draw.
//!
//! Target and draft both come through here, since verification is exact only if the drafted token was drawn from
//! precisely the distribution it is judged by. This module knows logits and tokens; it must not know models, caches
//! or drafts (a drafted prefix is just more tokens).
//!
//! Order of the transforms: penalties, bias (`history`), then temperature, top-k, top-p, min-p (`truncate`).
//! `exp` and `ln` are our own (`tandem_model::math`, `ln`): the same logits give the same text on every platform.

mod chance;
mod distribution;
mod history;
mod kept;
mod ln;
mod logprobs;
mod noise;
mod params;
mod processor;
mod sampler;
#[cfg(test)]
mod tests;
mod truncate;

pub(crate) use chance::Chance;
#[cfg(test)]
pub(crate) use chance::distinct;
pub use distribution::Distribution;
pub(crate) use kept::KeptRow;
pub use logprobs::{MAX_TOP_LOGPROBS, TokenLogprobs};
pub use params::{InvalidParam, SamplingParams};
pub(crate) use processor::Processor;
pub use sampler::Sampler;
pub(crate) use sampler::Source;
