//! The knobs of a request, checked once.

use std::collections::BTreeMap;

use crate::TokenId;

/// How the next token is chosen. Order: repetition, presence and frequency penalties, logit bias, temperature, top-k,
/// top-p, min-p. Target and draft see the same transforms; without that, verification is not exact.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// At least 0; 0 is greedy.
    pub temperature: f32,
    /// Keeps this many most likely tokens; 0 keeps all.
    pub top_k: usize,
    /// Keeps the smallest set of most likely tokens with at least this mass, in (0, 1].
    pub top_p: f32,
    /// Drops tokens less likely than this fraction of the most likely one, in [0, 1].
    pub min_p: f32,
    /// Divides positive and multiplies negative logits of tokens seen in prompt or output, more than 0.
    pub repetition_penalty: f32,
    /// Subtracted once from the logit of each generated token, in [-2, 2].
    pub presence_penalty: f32,
    /// Subtracted from a token's logit for each time it was generated, in [-2, 2].
    pub frequency_penalty: f32,
    /// Added to logits by token id, in [-100, 100].
    pub logit_bias: BTreeMap<TokenId, f32>,
    /// Makes the text a function of (model, prompt, parameters, seed) alone.
    pub seed: Option<u64>,
}
