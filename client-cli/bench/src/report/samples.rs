//! What was sampled.

use serde::{Deserialize, Serialize};

use crate::method::{Method, Serving};

/// What speculation did for one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speculation {
    /// Decoding steps: the one that read the end of the prompt is not counted.
    pub steps: u64,
    /// Of these, steps that verified a draft.
    pub drafted_steps: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Drafted tokens accepted.
    pub accepted: u64,
    /// Tokens per drafted step, the recovered or bonus token counted.
    pub mean_length: f64,
    /// Spent drafting.
    pub draft: f64,
    /// Spent in the target's forwards.
    pub verify: f64,
    /// Spent deciding which tokens stand.
    pub accept: f64,
    /// Spent bringing caches in line.
    pub cache_update: f64,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How it was decoded.
    pub method: Method,
    /// Kind of text.
    pub category: String,
    /// Index of the prompt.
    pub prompt: usize,
    /// Which time, from 0.
    pub round: usize,
    /// Tokens of the answer.
    pub tokens: u32,
    /// To the first token.
    pub first_token: f64,
    /// From the first token to the last.
    pub decode: f64,
    /// Energy of the machine meanwhile, prefill included.
    pub joules: Option<f64>,
    /// Share of the answer's tokens that end a sequence of eight which occurred in it before.
    pub repeated: f64,
    /// What speculation did.
    pub speculation: Speculation,
}

/// One answer to the long prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Long {
    /// How it was decoded.
    pub method: Method,
    /// Whether it was the first request of a daemon.
    pub cold: bool,
    /// From the start of the daemon's process until it served, where it was cold.
    pub start: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub tokens: u32,
    /// To the first token.
    pub first_token: f64,
    /// From the first token to the last.
    pub decode: f64,
    /// Energy of the machine meanwhile, prefill included.
    pub joules: Option<f64>,
    /// What speculation did.
    pub speculation: Speculation,
}

/// Memory of a daemon at the end of a request. All but the peak is as the daemon accounts for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// What the daemon had at hand; `None`: it served already, with whatever it has.
    pub serving: Option<Serving>,
    /// Tokens of prompt and answer when it was read.
    pub context: u32,
    /// Most dirty memory seen.
    pub peak_footprint: u64,
    /// Clean, mapped weights.
    pub mapped_weights: u64,
    /// Most the daemon may use.
    pub budget: u64,
    /// The target's weights.
    pub weights: u64,
    /// The target's cache.
    pub kv: u64,
    /// Weights of the draft model or the exit adapter.
    pub draft_weights: u64,
    /// Cache of the draft model or the exit adapter, and the texts that are searched.
    pub draft_kv: u64,
}

/// What a step of so many rows took in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Which round, from 0.
    pub round: usize,
    /// Rows: drafted tokens and one more.
    pub rows: u32,
    /// Seconds of the target's forward and what is done with it.
    pub seconds: f64,
    /// Steps that the daemon measured in the round.
    pub samples: u32,
}

/// Drafts of a fixed length in one answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// What drafted: `draft` or `self`.
    pub method: Method,
    /// Kind of text.
    pub category: String,
    /// Tokens drafted in each step.
    pub length: u32,
    /// Steps that drafted.
    pub drafted_steps: u64,
    /// Tokens drafted.
    pub drafted: u64,
    /// Accepted, by position in the draft.
    pub accepted: Vec<u64>,
    /// Seconds spent drafting.
    pub seconds: f64,
}

impl Run {
    /// Tokens per second after the first; `None` where there was no second one.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.tokens, self.decode)
    }
}

impl Long {
    /// Tokens per second after the first; `None` where there was no second one.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        rate(self.tokens, self.decode)
    }
}

fn rate(tokens: u32, seconds: f64) -> Option<f64> {
    (tokens > 1 && seconds > 0.0).then(|| f64::from(tokens - 1) / seconds)
}
