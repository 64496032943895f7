//! Penalties, bias and temperature, by hand.

use proptest::prelude::*;

use super::*;

/// Logits that a transform must have produced, given the distribution it led to.
fn assert_softmax_of(distribution: &Distribution, logits: &[f32]) {
    let exps: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
    let total: f64 = exps.iter().sum();
    let probs: Vec<f32> = exps.iter().map(|exp| (exp / total) as f32).collect();
    assert_probs(distribution, &probs);
}

const LOGITS: [f32; 5] = [2.0, -1.0, 0.5, 1.0, 0.0];

#[test]
fn temperature_divides() {
    let params = SamplingParams {
        temperature: 0.5,
        ..plain()
    };
    assert_softmax_of(&distribution(&params, &LOGITS), &[4.0, -2.0, 1.0, 2.0, 0.0]);
}

#[test]
fn repetition_sees_prompt_output_and_draft() {
    let params = SamplingParams {
        repetition_penalty: 2.0,
        ..plain()
    };
    let mut sampler = Sampler::new(params, &[0, 99], 0);
    sampler.commit(1);
    // 0 from the prompt, 1 generated, 3 drafted; 99 lies outside this vocabulary.
    assert_softmax_of(
        &sampler.distribution(&LOGITS, &[3]),
        &[1.0, -2.0, 0.5, 0.5, 0.0],
    );
}

#[test]
fn presence_counts_generated_tokens_once() {
    let params = SamplingParams {
        presence_penalty: 0.5,
        ..plain()
    };
    let mut sampler = Sampler::new(params, &[0], 0);
    sampler.commit(1);
    sampler.commit(1);
    assert_softmax_of(
        &sampler.distribution(&LOGITS, &[2, 2]),
        &[2.0, -1.5, 0.0, 1.0, 0.0],
    );
}

#[test]
fn frequency_counts_every_time() {
    let params = SamplingParams {
        frequency_penalty: 0.25,
        ..plain()
    };
    let mut sampler = Sampler::new(params, &[0, 0], 0);
    sampler.commit(1);
    sampler.commit(1);
    assert_softmax_of(
        &sampler.distribution(&LOGITS, &[1, 4]),
        &[2.0, -1.75, 0.5, 1.0, -0.25],
    );
}

#[test]
fn bias_comes_after_penalties_and_before_temperature() {
    let params = SamplingParams {
        temperature: 0.5,
        repetition_penalty: 2.0,
        logit_bias: [(0, 3.0), (4, -100.0), (7, 1.0)].into(),
        ..plain()
    };
    let sampler = Sampler::new(params, &[0], 0);
    assert_softmax_of(
        &sampler.distribution(&LOGITS, &[]),
        &[8.0, -2.0, 1.0, 2.0, -200.0],
    );
}

#[test]
fn greedy_takes_the_lowest_of_equals_after_penalties_and_bias() {
    let greedy = SamplingParams::greedy();
    assert_eq!(
        distribution(&greedy, &[1.0, 3.0, 3.0]),
        Distribution::one_hot(1)
    );
    let biased = SamplingParams {
        logit_bias: [(0, 2.0)].into(),
        ..greedy.clone()
    };
    assert_eq!(
        distribution(&biased, &[1.0, 3.0, 3.0]),
        Distribution::one_hot(0)
    );
    let penalized = SamplingParams {
        presence_penalty: 1.0,
        ..greedy
    };
    let sampler = Sampler::new(penalized, &[], 0);
    assert_eq!(
        sampler.distribution(&[1.0, 3.0, 3.0], &[1]),
        Distribution::one_hot(2)
    );
}

proptest! {
    /// A drafted token weighs exactly as a committed one: every bit of the distribution is the same.
    #[test]
    fn drafted_equals_committed(
        logits in prop::collection::vec(-5.0_f32..5.0, 6),
        prompt in prop::collection::vec(0_u32..6, 0..4),
        tokens in prop::collection::vec(0_u32..6, 0..8),
        split in 0_usize..8,
        (repetition_penalty, presence_penalty, frequency_penalty) in (0.5_f32..2.0, -2.0_f32..2.0, -2.0_f32..2.0),
    ) {
        let params = SamplingParams { repetition_penalty, presence_penalty, frequency_penalty, ..plain() };
        let mut committed = Sampler::new(params, &prompt, 0);
        let (before, drafted) = tokens.split_at(split.min(tokens.len()));
        before.iter().for_each(|&token| committed.commit(token));
        let with_draft = committed.distribution(&logits, drafted);
        drafted.iter().for_each(|&token| committed.commit(token));
        prop_assert_eq!(with_draft, committed.distribution(&logits, &[]));
    }
}
