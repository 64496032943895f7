//! The state of one sequence that choosing its tokens needs.

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;

use super::chance::{self, Chance, Generator};
use super::noise::Noise;
use super::processor::Processor;
use super::{Distribution, SamplingParams};

/// Chooses the tokens of one sequence: its transforms, its history and its randomness.
#[derive(Debug)]
pub struct Sampler {
    pub(crate) processor: Processor,
    pub(crate) source: Source,
    pub(crate) scratch: Scratch,
}

/// Where randomness comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The same for every drafter: a function of seed, position and token.
    Shared(Noise),
    /// Independent draws.
    Own(Generator),
}

/// Memory kept from step to step.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) distribution: Distribution,
    pub(crate) residual: Vec<f64>,
    pub(crate) row: Vec<f32>,
}

impl Sampler {
    /// Starts after `prompt`. `entropy` feeds the draws of a request without a seed and is otherwise ignored.
    ///
    /// `params` should have passed [`SamplingParams::validate`]; others give some token, never a panic.
    #[must_use]
    pub fn new(params: SamplingParams, prompt: &[TokenId], entropy: u64) -> Self {
        let source = match params.seed {
            Some(seed) => Source::Shared(Noise::new(seed)),
            None => Source::Own(Generator::new(entropy)),
        };
        let scratch = Scratch {
            distribution: Distribution::one_hot(0),
            residual: Vec::new(),
            row: Vec::new(),
        };
        Self {
            processor: Processor::new(params, prompt),
            source,
            scratch,
        }
    }

    /// Adds a generated token to the history.
    pub fn commit(&mut self, token: TokenId) {
        self.processor.commit(token);
    }

    /// Whether choosing reads more of a row of logits than what leads in it.
    pub(crate) fn reads_values(&self) -> bool {
        self.processor.reads_values()
    }

    /// Distribution of the token that follows the committed history and then `drafted`; `logits` is `[V]`.
    ///
    /// One-hot when greedy. NaN counts as negative infinity; where no logit is above that, token 0 is certain.
    #[must_use]
    pub fn distribution<'a>(
        &self,
        logits: impl Into<LogitsRow<'a>>,
        drafted: &[TokenId],
    ) -> Distribution {
        let mut out = Distribution::one_hot(0);
        self.distribution_into(logits.into(), drafted, &mut out);
        out
    }

    /// [`Self::distribution`] into memory that is there.
    pub(crate) fn distribution_into(
        &self,
        logits: LogitsRow<'_>,
        drafted: &[TokenId],
        out: &mut Distribution,
    ) {
        self.processor.distribution_into(logits, drafted, out);
    }

    /// Draws the token at `position`, the absolute index in the sequence, prompt included.
    ///
    /// With a seed the result depends on (seed, position, distribution) alone, for draft and target alike.
    pub fn draw(&mut self, distribution: &Distribution, position: usize) -> TokenId {
        if let Some(token) = distribution.certain() {
            return token;
        }
        match &mut self.source {
            Source::Shared(noise) => noise.draw(distribution, position),
            Source::Own(generator) => {
                let index = generator.pick(distribution.weights(), distribution.total());
                distribution.token(index)
            }
        }
    }

    /// What [`Self::draw`] will return, where that is known beforehand, else the likeliest token. Draws nothing.
    #[must_use]
    pub(crate) fn foresee(&self, distribution: &Distribution, position: usize) -> TokenId {
        if let Some(token) = distribution.certain() {
            return token;
        }
        match &self.source {
            Source::Shared(noise) => noise.draw(distribution, position),
            Source::Own(_) => distribution.likeliest(),
        }
    }

    /// Draws at most `count` different tokens, without replacement and in order: the children of one node of a tree.
    ///
    /// The first is distributed as [`Self::draw`]. Fewer come back where the support is smaller.
    pub fn draw_distinct(
        &mut self,
        distribution: &Distribution,
        position: usize,
        count: usize,
    ) -> Vec<TokenId> {
        match &mut self.source {
            Source::Shared(noise) => {
                let arrivals = noise.first(distribution, position, count);
                arrivals.into_iter().map(|arrival| arrival.token).collect()
            }
            Source::Own(generator) => chance::distinct(generator, distribution, count),
        }
    }
}
