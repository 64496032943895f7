//! No logits and no parameters, however broken, cause a panic or a token outside the vocabulary.

use proptest::prelude::*;

use super::*;
use crate::verify::{Draft, verify};

fn any_logit() -> impl Strategy<Value = f32> {
    let special = prop::sample::select(vec![
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        0.0,
        -0.0,
    ]);
    prop_oneof![
        special,
        any::<u32>().prop_map(f32::from_bits),
        -10.0_f32..10.0
    ]
}

prop_compose! {
    fn any_params()(
        (temperature, top_p, min_p) in (any_logit(), any_logit(), any_logit()),
        top_k in prop_oneof![0_usize..5, any::<usize>()],
        (repetition_penalty, presence_penalty, frequency_penalty) in (any_logit(), any_logit(), any_logit()),
        logit_bias in prop::collection::btree_map(any::<u32>().prop_map(|id| id % 12), any_logit(), 0..3),
        seed: Option<u64>,
    ) -> SamplingParams {
        SamplingParams {
            temperature, top_k, top_p, min_p, repetition_penalty, presence_penalty, frequency_penalty, logit_bias, seed,
        }
    }
}

/// Valid parameters, each at an edge of its range or inside.
fn valid_params() -> impl Strategy<Value = SamplingParams> {
    let temperature = prop::sample::select(vec![0.0, f32::MIN_POSITIVE, 1e-6, 1.0, f32::MAX]);
    let penalty = prop::sample::select(vec![f32::MIN_POSITIVE, 1.0, f32::MAX]);
    (
        temperature,
        penalty,
        0_usize..4,
        0.01_f32..=1.0,
        0.0_f32..=1.0,
        any::<Option<u64>>(),
    )
        .prop_map(
            |(temperature, repetition_penalty, top_k, top_p, min_p, seed)| SamplingParams {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty,
                seed,
                presence_penalty: 2.0,
                frequency_penalty: -2.0,
                logit_bias: [(0, 100.0), (1, -100.0)].into(),
            },
        )
}

fn token_of(
    params: SamplingParams,
    logits: &[f32],
    drafted: &[TokenId],
) -> (Distribution, TokenId) {
    let mut sampler = Sampler::new(params, &[0, 3, 77], 1);
    sampler.commit(2);
    let distribution = sampler.distribution(logits, drafted);
    sampler.draw(&distribution, 5);
    let draft = Draft::chain(drafted.iter().copied());
    let verdict = verify(&draft, &mut sampler, 5, |_| logits);
    (distribution, verdict.next)
}

proptest! {
    #[test]
    fn nothing_panics(
        params in any_params(),
        logits in prop::collection::vec(any_logit(), 0..12),
        drafted in prop::collection::vec(0_u32..14, 0..4),
    ) {
        let (_, token) = token_of(params, &logits, &drafted);
        prop_assert!((token as usize) < logits.len().max(1));
    }

    #[test]
    fn valid_parameters_give_a_distribution(
        params in valid_params(),
        logits in prop::collection::vec(any_logit(), 2..12),
        drafted in prop::collection::vec(0_u32..14, 0..4),
    ) {
        prop_assert!(params.validate(logits.len()).is_ok());
        let (distribution, token) = token_of(params, &logits, &drafted);
        let mass: f64 = distribution.iter().map(|(_, prob)| f64::from(prob)).sum();
        prop_assert!((mass - 1.0).abs() < 1e-5, "{mass}");
        prop_assert!((token as usize) < logits.len());
    }
}

#[test]
fn rows_that_say_nothing_give_token_0() {
    for params in [
        SamplingParams::greedy(),
        plain(),
        SamplingParams {
            top_k: 1,
            ..plain()
        },
    ] {
        for row in [[f32::NAN; 3], [f32::NEG_INFINITY; 3]] {
            assert_eq!(distribution(&params, &row), Distribution::one_hot(0));
        }
    }
}

#[test]
fn nan_counts_as_excluded_and_infinity_as_certain() {
    let row = [f32::NAN, 1.0, f32::NEG_INFINITY, 1.0];
    assert_probs(&distribution(&plain(), &row), &[0.0, 0.5, 0.0, 0.5]);
    assert_probs(
        &distribution(&plain(), &[1.0, f32::INFINITY, 2.0]),
        &[0.0, 1.0, 0.0],
    );
}
