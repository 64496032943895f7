//! Chunks and the regular end of a request, as they are sent.

use std::time::Duration;

use tandem_engine::FinishReason;
use tandem_engine::sampling::TokenLogprobs;
use tandem_proto::v1;

use super::speculation::request_speculation;
use crate::record::Times;
use crate::replies::{Chunk, Finished};

/// Writes a duration; one too long for the wire becomes the longest.
pub(crate) fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration).unwrap_or(prost_types::Duration {
        seconds: i64::MAX,
        nanos: 999_999_999,
    })
}

/// Writes a count; one too large for the wire becomes the largest.
pub(crate) fn count(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn logprobs(token: TokenLogprobs) -> v1::TokenLogprobs {
    let top = token.top.into_iter();
    v1::TokenLogprobs {
        logprob: token.logprob,
        top: top
            .map(|(token_id, logprob)| v1::TopLogprob { token_id, logprob })
            .collect(),
    }
}

/// Writes a chunk.
pub(crate) fn chunk(chunk: Chunk) -> v1::GenerateResponse {
    let chunk = v1::GenerateChunk {
        text: chunk.text,
        token_ids: chunk.token_ids,
        logprobs: chunk.logprobs.into_iter().map(logprobs).collect(),
    };
    v1::GenerateResponse {
        response: Some(v1::generate_response::Response::Chunk(chunk)),
    }
}

/// Writes the regular end of a request.
pub(crate) fn complete(
    finished: Finished,
    pair: String,
    request_id: String,
) -> v1::GenerateResponse {
    let Finished {
        reason,
        stats,
        times,
    } = finished;
    let (finish_reason, matched_stop) = finish_reason(reason);
    let complete = v1::GenerateComplete {
        finish_reason: finish_reason.into(),
        matched_stop,
        usage: Some(v1::Usage {
            prompt_tokens: count(stats.prompt_tokens),
            completion_tokens: count(stats.completion_tokens),
        }),
        timings: Some(timings(times)),
        speculation: Some(request_speculation(stats)),
        pair,
        request_id,
    };
    v1::GenerateResponse {
        response: Some(v1::generate_response::Response::Complete(complete)),
    }
}

fn finish_reason(
    reason: FinishReason,
) -> (v1::FinishReason, Option<v1::generate_complete::MatchedStop>) {
    use v1::generate_complete::MatchedStop;
    match reason {
        FinishReason::StopToken(token) => (
            v1::FinishReason::Stop,
            Some(MatchedStop::MatchedStopTokenId(token)),
        ),
        FinishReason::StopString(text) => (
            v1::FinishReason::Stop,
            Some(MatchedStop::MatchedStopString(text)),
        ),
        FinishReason::Length => (v1::FinishReason::Length, None),
        FinishReason::TimeLimit => (v1::FinishReason::TimeLimit, None),
    }
}

fn timings(times: Times) -> v1::Timings {
    v1::Timings {
        queue: Some(duration(times.queue)),
        time_to_first_token: Some(duration(times.time_to_first_token)),
        decode: Some(duration(times.decode)),
        total: Some(duration(times.total)),
        load: times.load.map(duration),
    }
}

#[cfg(test)]
mod tests {
    use tandem_engine::RequestStats;

    use super::*;

    #[test]
    fn the_end_is_written_in_full() {
        let stats = RequestStats {
            speculation: Box::default(),
            prompt_tokens: 3,
            completion_tokens: 8,
            steps: 4,
            drafted_steps: 2,
            draft_tokens: 6,
            accepted_tokens: 4,
            drafted_step_tokens: 6,
            accepted_per_position: vec![2, 1, 1],
            drafter: Some("model"),
            off_reason: None,
        };
        let times = Times {
            total: Duration::from_millis(1250),
            ..Times::default()
        };
        let finished = Finished {
            reason: FinishReason::StopString("x".into()),
            stats,
            times,
        };
        let response = complete(finished, "default".into(), "r1".into());
        let Some(v1::generate_response::Response::Complete(end)) = response.response else {
            panic!("not the end")
        };
        assert_eq!(end.finish_reason(), v1::FinishReason::Stop);
        assert_eq!(
            end.matched_stop,
            Some(v1::generate_complete::MatchedStop::MatchedStopString(
                "x".into()
            ))
        );
        assert_eq!(
            end.usage.unwrap(),
            v1::Usage {
                prompt_tokens: 3,
                completion_tokens: 8
            }
        );
        assert_eq!(
            end.timings.unwrap().total.unwrap(),
            prost_types::Duration {
                seconds: 1,
                nanos: 250_000_000
            }
        );
        let speculation = end.speculation.unwrap();
        assert!(speculation.enabled && speculation.off_reason.is_empty());
        assert_eq!(
            (
                speculation.drafter.as_str(),
                speculation.mean_acceptance_length
            ),
            ("model", 3.0)
        );
        assert_eq!(speculation.accepted_per_position, [2, 1, 1]);
        assert_eq!(
            (end.pair.as_str(), end.request_id.as_str()),
            ("default", "r1")
        );
    }
}
