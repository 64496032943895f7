//! Penalties and bias: what the tokens so far and the request do to the logits.

use std::collections::HashMap;

use tandem_model::TokenId;

use super::SamplingParams;

/// How often each token occurred in one sequence.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// Times generated, for every token of the prompt (perhaps 0) and of the output; empty where nothing asks.
    generated: HashMap<TokenId, u32>,
    penalized: bool,
}

impl History {
    pub(super) fn new(params: &SamplingParams, prompt: &[TokenId]) -> Self {
        let penalized = params.repetition_penalty != 1.0
            || params.presence_penalty != 0.0
            || params.frequency_penalty != 0.0;
        let counted = if penalized { prompt } else { &[] };
        Self {
            generated: counted.iter().map(|&token| (token, 0)).collect(),
            penalized,
        }
    }

    pub(super) fn commit(&mut self, token: TokenId) {
        if self.penalized {
            *self.generated.entry(token).or_default() += 1;
        }
    }

    /// Whether [`Self::adjust`] can change anything.
    pub(super) fn adjusts(&self, params: &SamplingParams) -> bool {
        self.penalized || !params.logit_bias.is_empty()
    }

    /// Applies penalties for this history followed by `drafted`, then the bias, to `row`, a copy of `logits`.
    pub(super) fn adjust(
        &self,
        params: &SamplingParams,
        logits: &[f32],
        drafted: &[TokenId],
        row: &mut [f32],
    ) {
        if self.penalized {
            for (&token, &times) in &self.generated {
                penalize(params, logits, token, times, row);
            }
            for &token in drafted {
                let before = self.generated.get(&token).copied().unwrap_or(0);
                // A draft is a handful of tokens: counting again beats a map.
                let again = drafted
                    .iter()
                    .map(|&other| u32::from(other == token))
                    .sum::<u32>();
                penalize(params, logits, token, before + again, row);
            }
        }
        for (&token, &bias) in &params.logit_bias {
            if let Some(logit) = row.get_mut(token as usize) {
                *logit += bias;
            }
        }
    }
}

/// Sets `row[token]` from the raw logit, so that a later call for the same token replaces an earlier one.
fn penalize(params: &SamplingParams, logits: &[f32], token: TokenId, times: u32, row: &mut [f32]) {
    let index = token as usize;
    let (Some(&logit), Some(out)) = (logits.get(index), row.get_mut(index)) else {
        return; // the draft's or a padded vocabulary may be smaller
    };
    let repetition = params.repetition_penalty;
    let scaled = if logit > 0.0 {
        logit / repetition
    } else {
        logit * repetition
    };
    let presence = if times > 0 {
        params.presence_penalty
    } else {
        0.0
    };
    *out = scaled - presence - params.frequency_penalty * times as f32;
}
