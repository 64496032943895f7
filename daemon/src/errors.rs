//! The one table from what went wrong to a gRPC status with `google.rpc` details; `docs/grpc.md` shows it to clients.
//!
//! Every status carries an `ErrorInfo` of our domain, whose reason is stable and meant for programs; messages are meant
//! for people and may change.

use std::collections::HashMap;
use std::time::Duration;

use tandem_engine::RequestFailure;
use tandem_engine::engine::RequestError;
use tandem_model::template::TemplateError;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::residency::ReloadError;
use tandem_proto::ERROR_DOMAIN;

/// When to try again after a refusal for want of room.
const RETRY_WHEN_FULL: Duration = Duration::from_secs(1);
/// When to try again after a refusal for want of memory: the shortest quiet that ends it by default.
const RETRY_WHEN_SHORT: Duration = Duration::from_secs(10);
/// When to try again after a refusal because this daemon is ending.
const RETRY_WHEN_DRAINING: Duration = Duration::from_secs(2);

/// Longest text in an error, in bytes.
const MOST_TEXT: usize = 1 << 10;
/// Longest text of all fields that one error names, in bytes.
const MOST_FIELDS_TEXT: usize = 3 << 10;

fn details<const N: usize>(reason: &str, metadata: [(&str, String); N]) -> ErrorDetails {
    let metadata: HashMap<String, String> = metadata
        .into_iter()
        .map(|(key, value)| (key.to_owned(), clipped(value)))
        .collect();
    ErrorDetails::with_error_info(reason, ERROR_DOMAIN, metadata)
}

fn status(code: Code, message: impl Into<String>, details: ErrorDetails) -> Status {
    Status::with_error_details(code, clipped(message.into()), details)
}

/// Cuts what is too long for a header: errors travel in those, most libraries take 8 KiB of them, and names and values that
/// errors quote come from clients and files.
fn clipped(text: String) -> String {
    clipped_to(MOST_TEXT, text)
}

fn clipped_to(most: usize, text: String) -> String {
    if text.len() <= most {
        return text;
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

/// The peer runs as another user.
pub(crate) fn foreign_user(peer: Option<u32>, own: u32) -> Status {
    let peer = peer.map_or_else(|| "an unknown user".to_owned(), |uid| format!("user {uid}"));
    let message = format!("this daemon serves user {own} only, and the call comes from {peer}");
    status(
        Code::PermissionDenied,
        message,
        details("FOREIGN_USER", [("served_uid", own.to_string())]),
    )
}

/// Fields that are not possible; `violations` has at least one.
pub(crate) fn invalid_fields(mut violations: Vec<FieldViolation>) -> Status {
    let share = MOST_FIELDS_TEXT / violations.len().max(1);
    for violation in &mut violations {
        let description = std::mem::take(&mut violation.description);
        violation.description = clipped_to(share.min(MOST_TEXT), description);
    }
    let message = violations
        .iter()
        .map(|violation| format!("{}: {}", violation.field, violation.description))
        .collect::<Vec<_>>()
        .join("; ");
    let mut details = details("INVALID_FIELD", []);
    details.set_bad_request(violations);
    status(Code::InvalidArgument, message, details)
}

/// One field that is not possible.
pub(crate) fn invalid_field(field: impl Into<String>, description: impl Into<String>) -> Status {
    invalid_fields(vec![FieldViolation::new(field, description)])
}

/// No pair has this name.
pub(crate) fn unknown_pair(name: &str, known: &[String]) -> Status {
    let message = format!(
        "there is no pair \"{name}\"; configured: {}",
        known.join(", ")
    );
    let mut details = details("UNKNOWN_PAIR", [("pair", name.to_owned())]);
    let name = clipped(name.to_owned());
    details.set_resource_info("tandem.v1.Pair", name, "", clipped(message.clone()));
    status(Code::NotFound, message, details)
}

/// The pair runs and queues as much as it may.
pub(crate) fn queue_full(pair: &str, capacity: usize) -> Status {
    let message = format!(
        "pair \"{pair}\" already has {capacity} requests running and waiting, which is its limit"
    );
    let mut details = details(
        "QUEUE_FULL",
        [
            ("pair", pair.to_owned()),
            ("capacity", capacity.to_string()),
        ],
    );
    details.set_retry_info(Some(RETRY_WHEN_FULL));
    details.set_quota_failure(vec![tonic_types::QuotaViolation::new(
        format!("pair:{pair}"),
        "server.max_concurrent + server.max_queue requests at once",
    )]);
    status(Code::ResourceExhausted, message, details)
}

/// The daemon was asked to end.
pub(crate) fn draining() -> Status {
    let mut details = details("DRAINING", []);
    details.set_retry_info(Some(RETRY_WHEN_DRAINING));
    status(
        Code::Unavailable,
        "the daemon is ending; try again when it has restarted",
        details,
    )
}

/// The daemon ended before this stream did.
pub(crate) fn drain_expired(limit: Duration) -> Status {
    let mut details = details("DRAIN_EXPIRED", []);
    details.set_retry_info(Some(RETRY_WHEN_DRAINING));
    let message = format!(
        "the daemon ended, and this request was not done within its drain limit of {} s",
        limit.as_secs()
    );
    status(Code::Unavailable, message, details)
}

/// The system is short of memory, and takes no more work.
pub(crate) fn memory_short(footprint: u64, budget: u64) -> Status {
    let message = format!(
        "the system is short of memory, and no new requests are taken until it is not; the daemon takes {footprint} of \
         at most {budget} bytes"
    );
    let mut details = details(
        "MEMORY_SHORT",
        [
            ("footprint_bytes", footprint.to_string()),
            ("budget_bytes", budget.to_string()),
        ],
    );
    details.set_retry_info(Some(RETRY_WHEN_SHORT));
    details.set_quota_failure(vec![tonic_types::QuotaViolation::new(
        "memory",
        "physical memory of the machine",
    )]);
    status(Code::ResourceExhausted, message, details)
}

/// A reload changed nothing, because something is wrong with the configuration.
pub(crate) fn reload_failed(error: &ReloadError) -> Status {
    let message = format!("the configuration stays as it was: {error}");
    let (kind, subject) = match error {
        ReloadError::Config(_) | ReloadError::Empty { .. } => ("CONFIG", "config".to_owned()),
        ReloadError::Pair { pair, .. } => ("PAIR", format!("pair:{pair}")),
        ReloadError::TooLarge(_) => ("MEMORY", "memory.budget".to_owned()),
        ReloadError::Panic => return internal(&message),
    };
    let mut details = details("RELOAD_FAILED", [("cause", kind.to_owned())]);
    details.set_precondition_failure(vec![tonic_types::PreconditionViolation::new(
        kind,
        subject,
        error.to_string(),
    )]);
    status(Code::FailedPrecondition, message, details)
}

/// The pair could not be loaded, for a reason that only a person can change.
pub(crate) fn pair_failed(pair: &str, error: &str) -> Status {
    let message = format!("pair \"{pair}\" is not loaded: {error}");
    let mut details = details("PAIR_NOT_LOADED", [("pair", pair.to_owned())]);
    details.set_precondition_failure(vec![tonic_types::PreconditionViolation::new(
        "PAIR",
        clipped(format!("pair:{pair}")),
        clipped(error.to_owned()),
    )]);
    status(Code::FailedPrecondition, message, details)
}

/// `SPECULATION_REQUIRED` where nothing drafts.
pub(crate) fn no_speculation(pair: &str, why: &str) -> Status {
    let message = format!("speculation is required, and pair \"{pair}\" decodes plainly: {why}");
    let mut details = details("SPECULATION_UNAVAILABLE", [("pair", pair.to_owned())]);
    details.set_precondition_failure(vec![tonic_types::PreconditionViolation::new(
        "DRAFT",
        clipped(format!("pair:{pair}")),
        clipped(why.to_owned()),
    )]);
    status(Code::FailedPrecondition, message, details)
}

/// Chat messages for a model without a chat template, or with one that cannot be used.
pub(crate) fn no_template(pair: &str, error: &TemplateError) -> Status {
    let reason = match error {
        TemplateError::Missing | TemplateError::NoDefault { .. } => "NO_CHAT_TEMPLATE",
        _ => "BAD_CHAT_TEMPLATE",
    };
    let why = clipped(format!("{error}; send text or token_ids"));
    let message = format!("pair \"{pair}\" cannot take chat messages: {why}");
    let mut details = details(reason, [("pair", pair.to_owned())]);
    details.set_precondition_failure(vec![tonic_types::PreconditionViolation::new(
        "TEMPLATE",
        clipped(format!("pair:{pair}")),
        why,
    )]);
    status(Code::FailedPrecondition, message, details)
}

/// A prompt that is longer than the context whatever follows. It has at least `tokens` tokens: it was not read to its end.
pub(crate) fn prompt_too_long(
    pair: &str,
    tokens: usize,
    max_tokens: Option<u32>,
    context_length: usize,
) -> Status {
    let message = format!(
        "the prompt has {tokens} tokens or more, and the context of pair \"{pair}\" holds {context_length}: shorten it"
    );
    let mut details = details(
        "CONTEXT_OVERFLOW",
        [
            ("pair", pair.to_owned()),
            ("prompt_tokens", tokens.to_string()),
            ("max_tokens", max_tokens.unwrap_or(1).to_string()),
            ("context_length", context_length.to_string()),
        ],
    );
    details.set_bad_request(vec![FieldViolation::new("input", clipped(message.clone()))]);
    status(Code::InvalidArgument, message, details)
}

/// A message that is larger than `server.max_message_bytes`: `what` is `request` or `answer`. An answer has at least `size`
/// bytes: it was not made to its end.
pub(crate) fn message_too_large(what: &str, size: u64, limit: usize) -> Status {
    let advice = match what {
        "request" => "send less at once",
        _ => "ask for less at once",
    };
    let message = format!(
        "the {what} has {size} bytes, and messages have at most {limit} (server.max_message_bytes): {advice}"
    );
    let details = details(
        "MESSAGE_TOO_LARGE",
        [
            ("message", what.to_owned()),
            ("size_bytes", size.to_string()),
            ("limit_bytes", limit.to_string()),
        ],
    );
    status(Code::OutOfRange, message, details)
}

/// The client went away; nobody reads this.
pub(crate) fn abandoned() -> Status {
    status(
        Code::Cancelled,
        "the call was cancelled",
        details("CANCELLED", []),
    )
}

/// The client's deadline passed.
pub(crate) fn deadline_exceeded(limit: Duration) -> Status {
    let message = format!("the request's deadline of {} ms passed", limit.as_millis());
    status(
        Code::DeadlineExceeded,
        message,
        details("DEADLINE", [("limit_ms", limit.as_millis().to_string())]),
    )
}

/// A step of the engine failed, after which the engine cannot be used.
pub(crate) fn step_failed(pair: &str, error: &str) -> Status {
    let message = format!("pair \"{pair}\" could not compute a step: {error}");
    status(
        Code::Internal,
        message,
        details("STEP_FAILED", [("pair", pair.to_owned())]),
    )
}

/// A mapped file failed under the engine, which cannot be used any more.
pub(crate) fn weights_lost(pair: &str, error: &str) -> Status {
    let message = format!("pair \"{pair}\" is lost: {error}; the next request makes the file anew");
    status(
        Code::Internal,
        message,
        details("WEIGHTS_LOST", [("pair", pair.to_owned())]),
    )
}

/// One request failed in the engine, which goes on.
pub(crate) fn request_failed(pair: &str, error: &RequestFailure) -> Status {
    let message = format!("pair \"{pair}\" cannot answer this: {error}");
    let RequestFailure::NoFiniteLogits { position } = error;
    let metadata = [
        ("pair", pair.to_owned()),
        ("position", position.to_string()),
    ];
    status(
        Code::Internal,
        message,
        details("LOGITS_NOT_FINITE", metadata),
    )
}

/// The engine of a pair panicked; what was running on it is lost.
pub(crate) fn engine_panicked(pair: &str) -> Status {
    let message = format!(
        "the engine of pair \"{pair}\" stopped on an internal error; the daemon's log has it"
    );
    status(
        Code::Internal,
        message,
        details("ENGINE_PANICKED", [("pair", pair.to_owned())]),
    )
}

/// A part of the daemon is gone that never should be.
pub(crate) fn internal(what: &str) -> Status {
    status(Code::Internal, what, details("INTERNAL", []))
}

/// What the engine refused at submission.
pub(crate) fn request_refused(pair: &str, error: &RequestError) -> Status {
    let message = error.to_string();
    match error {
        RequestError::EmptyPrompt => invalid_field("input", message),
        RequestError::ContextOverflow {
            prompt_tokens,
            max_tokens,
            context_length,
        } => {
            let mut details = details(
                "CONTEXT_OVERFLOW",
                [
                    ("pair", pair.to_owned()),
                    ("prompt_tokens", prompt_tokens.to_string()),
                    ("max_tokens", max_tokens.to_string()),
                    ("context_length", context_length.to_string()),
                ],
            );
            details.set_bad_request(vec![FieldViolation::new("input", clipped(message.clone()))]);
            status(Code::InvalidArgument, message, details)
        }
        RequestError::InvalidParam(invalid) => invalid_field(
            format!("sampling_params.{}", invalid.field),
            invalid.problem.clone(),
        ),
        RequestError::TokenOutOfVocabulary { .. } => invalid_field("token_ids.ids", message),
        RequestError::CacheTooLarge {
            needed_bytes,
            available_bytes,
        } => {
            let mut details = details(
                "CACHE_TOO_LARGE",
                [
                    ("pair", pair.to_owned()),
                    ("needed_bytes", needed_bytes.to_string()),
                    ("available_bytes", available_bytes.to_string()),
                ],
            );
            details.set_quota_failure(vec![tonic_types::QuotaViolation::new(
                format!("pair:{pair}"),
                "memory.budget",
            )]);
            status(Code::ResourceExhausted, message, details)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_too_large_for_a_header() {
        let long = "é".repeat(1 << 20);
        let violations = vec![FieldViolation::new("chat.messages[15].role", long.clone()); 16];
        for status in [
            unknown_pair(&long, std::slice::from_ref(&long)),
            invalid_fields(violations),
            internal(&long),
            prompt_too_long(&long, 1, None, 1),
            no_speculation(&long, &long),
            pair_failed(&long, &long),
        ] {
            let size = status.message().len() + status.details().len();
            assert!(size < 8 << 10, "{size} bytes");
            assert!(status.get_details_error_info().is_some());
        }
    }
}
