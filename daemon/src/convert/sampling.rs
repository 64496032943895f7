//! `SamplingParams`, checked.

use tandem_engine::StopConditions;
use tandem_engine::sampling::{MAX_TOP_LOGPROBS, SamplingParams};
use tandem_proto::v1;

use super::request::Violations;

const MAX_STOP_STRINGS: usize = 16;
const MAX_STOP_BYTES: usize = 256;
const MAX_STOP_TOKENS: usize = 64;

/// Reads how the next token is chosen.
pub(super) fn sampling(params: v1::SamplingParams, bad: &mut Violations) -> SamplingParams {
    let sampling = SamplingParams {
        temperature: params.temperature.unwrap_or(0.0),
        top_k: params.top_k.unwrap_or(0) as usize,
        top_p: params.top_p.unwrap_or(1.0),
        min_p: params.min_p.unwrap_or(0.0),
        repetition_penalty: params.repetition_penalty.unwrap_or(1.0),
        presence_penalty: params.presence_penalty.unwrap_or(0.0),
        frequency_penalty: params.frequency_penalty.unwrap_or(0.0),
        logit_bias: params.logit_bias.into_iter().collect(),
        seed: params.seed,
    };
    // Which tokens exist is the engine's to check, when the pair is known.
    if let Err(invalid) = sampling.validate(usize::MAX) {
        bad.check(false, &format!("sampling_params.{}", invalid.field), || {
            invalid.problem
        });
    }
    sampling
}

/// Reads how many likeliest tokens are to be reported; `None`: no log-probabilities at all.
pub(super) fn logprobs(params: &v1::SamplingParams, bad: &mut Violations) -> Option<usize> {
    let wanted = params.logprobs? as usize;
    bad.check(
        wanted <= MAX_TOP_LOGPROBS,
        "sampling_params.logprobs",
        || format!("{wanted} is over {MAX_TOP_LOGPROBS}"),
    );
    Some(wanted)
}

/// Reads when generation ends.
pub(super) fn stop_conditions(params: &v1::SamplingParams, bad: &mut Violations) -> StopConditions {
    bad.check(
        params.max_tokens != Some(0),
        "sampling_params.max_tokens",
        || "is 0; ask for at least 1, or leave it out for what is left of the context".to_owned(),
    );
    bad.check(
        params.stop.len() <= MAX_STOP_STRINGS,
        "sampling_params.stop",
        || format!("{} strings are over {MAX_STOP_STRINGS}", params.stop.len()),
    );
    for (index, text) in params.stop.iter().enumerate().take(MAX_STOP_STRINGS) {
        bad.check(
            (1..=MAX_STOP_BYTES).contains(&text.len()),
            &format!("sampling_params.stop[{index}]"),
            || {
                format!(
                    "has {} bytes; 1 to {MAX_STOP_BYTES} are possible",
                    text.len()
                )
            },
        );
    }
    bad.check(
        params.stop_token_ids.len() <= MAX_STOP_TOKENS,
        "sampling_params.stop_token_ids",
        || {
            format!(
                "{} tokens are over {MAX_STOP_TOKENS}",
                params.stop_token_ids.len()
            )
        },
    );
    StopConditions {
        max_tokens: params.max_tokens.map(|tokens| tokens as usize),
        strings: params.stop.clone(),
        token_ids: params.stop_token_ids.clone(),
        ignore_eos: params.ignore_eos,
    }
}
