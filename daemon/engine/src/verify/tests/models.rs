//! Models small enough to enumerate: logits as a function of the context.

use std::hash::{DefaultHasher, Hash, Hasher};

use tandem_model::TokenId;

use crate::sampling::{Distribution, Sampler, SamplingParams};

/// A model whose logits are fixed noise, and the parameters its tokens are drawn with.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) vocabulary: usize,
    pub(super) salt: u64,
    pub(super) params: SamplingParams,
}

pub(super) const PROMPT: [TokenId; 2] = [1, 0];

/// Draws at temperature 1 from everything.
pub(super) fn plain() -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        ..SamplingParams::greedy()
    }
}

impl Model {
    pub(super) fn new(vocabulary: usize, salt: u64) -> Self {
        Self {
            vocabulary,
            salt,
            params: plain(),
        }
    }

    pub(super) fn with(mut self, params: SamplingParams) -> Self {
        self.params = params;
        self
    }

    /// Logits after the prompt and `context`, in [-2, 2).
    pub(super) fn logits(&self, context: &[TokenId]) -> Vec<f32> {
        let logit = |token: usize| {
            let mut hasher = DefaultHasher::new();
            (self.salt, context, token).hash(&mut hasher);
            (hasher.finish() >> 40) as f32 / (1 << 22) as f32 - 2.0
        };
        (0..self.vocabulary).map(logit).collect()
    }

    pub(super) fn sampler(&self, entropy: u64) -> Sampler {
        Sampler::new(self.params.clone(), &PROMPT, entropy)
    }

    /// Distribution after `context`, every token of it committed.
    pub(super) fn distribution(&self, context: &[TokenId]) -> Distribution {
        let mut sampler = self.sampler(0);
        context.iter().for_each(|&token| sampler.commit(token));
        sampler.distribution(&self.logits(context), &[])
    }

    /// Adds the probability of every continuation of `context` to `length` tokens, times `mass`, to `joint`.
    pub(super) fn complete(
        &self,
        context: &[TokenId],
        mass: f64,
        length: usize,
        joint: &mut [f64],
    ) {
        if context.len() >= length {
            let index = context[..length]
                .iter()
                .fold(0, |index, &token| index * self.vocabulary + token as usize);
            joint[index] += mass;
            return;
        }
        let distribution = self.distribution(context);
        for (token, _) in distribution.iter() {
            let prob = distribution.weight(token) / distribution.total();
            self.complete(&[context, &[token]].concat(), mass * prob, length, joint);
        }
    }

    /// Probability of every text of `length` tokens under plain sampling.
    pub(super) fn joint(&self, length: usize) -> Vec<f64> {
        let mut joint = vec![0.0; self.vocabulary.pow(length as u32)];
        self.complete(&[], 1.0, length, &mut joint);
        joint
    }
}
