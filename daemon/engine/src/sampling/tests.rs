//! The transforms against hand-computed cases and naive versions; the arithmetic against the standard library.

mod draws;
mod hostile;
mod params;
mod penalties;
mod rows;
mod truncation;

use tandem_model::TokenId;

use super::{Distribution, Sampler, SamplingParams};

/// Draws at temperature 1 from everything.
fn plain() -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        ..SamplingParams::greedy()
    }
}

/// Distribution without history.
fn distribution(params: &SamplingParams, logits: &[f32]) -> Distribution {
    Sampler::new(params.clone(), &[], 0).distribution(logits, &[])
}

/// Logits whose softmax at temperature 1 is `probs`.
fn logits_of(probs: &[f32]) -> Vec<f32> {
    probs.iter().map(|prob| prob.ln()).collect()
}

fn assert_probs(distribution: &Distribution, wanted: &[f32]) {
    for (token, &wanted) in (0..).zip(wanted) {
        let got = distribution.prob(token);
        assert!(
            (got - wanted).abs() < 1e-6,
            "token {token}: got {got}, wanted {wanted}"
        );
    }
    assert!(
        distribution
            .iter()
            .all(|(token, _)| (token as usize) < wanted.len())
    );
}

/// Tokens of positive probability.
fn support(distribution: &Distribution) -> Vec<TokenId> {
    distribution.iter().map(|(token, _)| token).collect()
}
