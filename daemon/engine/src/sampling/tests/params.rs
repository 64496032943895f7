//! What `validate` lets through.

use super::*;

/// A change to one field, the name of the field, and whether the change is refused.
type Case = (fn(&mut SamplingParams), &'static str, bool);

const CASES: [Case; 29] = [
    (|p| p.temperature = 0.0, "temperature", false),
    (|p| p.temperature = 5.0, "temperature", false),
    (|p| p.temperature = -0.1, "temperature", true),
    (|p| p.temperature = f32::NAN, "temperature", true),
    (|p| p.temperature = f32::INFINITY, "temperature", true),
    (|p| p.top_k = usize::MAX, "top_k", false),
    (|p| p.top_p = 1.0, "top_p", false),
    (|p| p.top_p = 0.0, "top_p", true),
    (|p| p.top_p = 1.1, "top_p", true),
    (|p| p.top_p = f32::NAN, "top_p", true),
    (|p| p.min_p = 0.0, "min_p", false),
    (|p| p.min_p = 1.0, "min_p", false),
    (|p| p.min_p = -0.1, "min_p", true),
    (|p| p.min_p = f32::NAN, "min_p", true),
    (|p| p.repetition_penalty = 0.5, "repetition_penalty", false),
    (|p| p.repetition_penalty = 0.0, "repetition_penalty", true),
    (|p| p.repetition_penalty = -1.0, "repetition_penalty", true),
    (
        |p| p.repetition_penalty = f32::INFINITY,
        "repetition_penalty",
        true,
    ),
    (|p| p.presence_penalty = -2.0, "presence_penalty", false),
    (|p| p.presence_penalty = 2.1, "presence_penalty", true),
    (|p| p.presence_penalty = f32::NAN, "presence_penalty", true),
    (|p| p.frequency_penalty = 2.0, "frequency_penalty", false),
    (|p| p.frequency_penalty = -2.1, "frequency_penalty", true),
    (
        |p| p.frequency_penalty = f32::NEG_INFINITY,
        "frequency_penalty",
        true,
    ),
    (|p| p.logit_bias = [(9, -100.0)].into(), "logit_bias", false),
    (|p| p.logit_bias = [(9, 100.5)].into(), "logit_bias", true),
    (
        |p| p.logit_bias = [(9, f32::NAN)].into(),
        "logit_bias",
        true,
    ),
    (|p| p.logit_bias = [(10, 1.0)].into(), "logit_bias", true),
    (|p| p.seed = Some(u64::MAX), "seed", false),
];

#[test]
fn every_range_is_checked() {
    for (number, (change, field, refused)) in CASES.into_iter().enumerate() {
        let mut params = plain();
        change(&mut params);
        let outcome = params.validate(10);
        assert_eq!(
            outcome.clone().err().map(|err| err.field),
            refused.then_some(field),
            "case {number}: {outcome:?}"
        );
    }
}

#[test]
fn messages_name_field_range_and_value() {
    let message = |params: SamplingParams| params.validate(10).map_err(|err| err.to_string());
    let hot = SamplingParams {
        top_p: 1.5,
        ..plain()
    };
    assert_eq!(
        message(hot),
        Err("top_p must be more than 0 and at most 1, got 1.5".into())
    );
    let biased = SamplingParams {
        logit_bias: [(10, 1.0)].into(),
        ..plain()
    };
    let wanted = "logit_bias names token 10, but the vocabulary has 10 tokens";
    assert_eq!(message(biased), Err(wanted.into()));
}

#[test]
fn the_default_is_greedy_and_valid() {
    let params = SamplingParams::default();
    assert!(params.is_greedy() && params.validate(1).is_ok());
}
