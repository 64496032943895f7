//! The knobs of a request, checked once.

use std::collections::BTreeMap;

use tandem_model::TokenId;

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

/// A parameter outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidParam {
    /// Name of the field of [`SamplingParams`].
    pub field: &'static str,
    /// What it must be and what it is.
    pub problem: String,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self::greedy()
    }
}

impl SamplingParams {
    /// The most likely token at every step, without penalties or bias.
    #[must_use]
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            logit_bias: BTreeMap::new(),
            seed: None,
        }
    }

    /// Whether the most likely token is taken instead of a draw.
    #[must_use]
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// Checks every range, for a target of `vocabulary` tokens.
    ///
    /// # Errors
    /// Names the first field that is out of range or not a finite number.
    pub fn validate(&self, vocabulary: usize) -> Result<(), InvalidParam> {
        let check = |field, value: f32, holds: bool, range: &str| {
            if holds && value.is_finite() {
                return Ok(());
            }
            let problem = format!("must be {range}, got {value}");
            Err(InvalidParam { field, problem })
        };
        let (temperature, top_p, min_p) = (self.temperature, self.top_p, self.min_p);
        check(
            "temperature",
            temperature,
            temperature >= 0.0,
            "a finite number of at least 0",
        )?;
        check(
            "top_p",
            top_p,
            top_p > 0.0 && top_p <= 1.0,
            "more than 0 and at most 1",
        )?;
        check("min_p", min_p, (0.0..=1.0).contains(&min_p), "from 0 to 1")?;
        let repetition = self.repetition_penalty;
        check(
            "repetition_penalty",
            repetition,
            repetition > 0.0,
            "a finite number above 0",
        )?;
        let (presence, frequency) = (self.presence_penalty, self.frequency_penalty);
        check(
            "presence_penalty",
            presence,
            presence.abs() <= 2.0,
            "from -2 to 2",
        )?;
        check(
            "frequency_penalty",
            frequency,
            frequency.abs() <= 2.0,
            "from -2 to 2",
        )?;
        for (&token, &bias) in &self.logit_bias {
            if token as usize >= vocabulary {
                let problem =
                    format!("names token {token}, but the vocabulary has {vocabulary} tokens");
                return Err(InvalidParam {
                    field: "logit_bias",
                    problem,
                });
            }
            let range = format!("from -100 to 100 for token {token}");
            check("logit_bias", bias, bias.abs() <= 100.0, &range)?;
        }
        Ok(())
    }
}
