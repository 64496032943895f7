//! A `GenerateRequest`, checked.

use std::time::Duration;

use tandem_engine::StopConditions;
use tandem_engine::policy::{DraftKind, MAX_DRAFT_LENGTH};
use tandem_engine::sampling::SamplingParams;
use tandem_proto::v1;
use tonic::Status;
use tonic_types::FieldViolation;

use super::residency::read_keep_alive;
use super::sampling::{logprobs, sampling, stop_conditions};
use crate::config::KeepAlive;
use crate::errors;

/// Most problems that one answer names: it travels in a header, of which clients take some thousand bytes.
const MAX_VIOLATIONS: usize = 4;
/// More than there are drafters.
const MAX_DRAFT_METHODS: usize = 16;
const MAX_REQUEST_ID_BYTES: usize = 128;
const MAX_HISTORY_BYTES: usize = 128;

/// A `GenerateRequest` whose fields are possible.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Empty: the default pair.
    pub(crate) pair: String,
    /// Empty: the daemon picks one.
    pub(crate) request_id: String,
    pub(crate) input: Input,
    pub(crate) sampling: SamplingParams,
    pub(crate) stop: StopConditions,
    /// How many likeliest tokens are reported with each token's log-probability.
    pub(crate) logprobs: Option<usize>,
    pub(crate) speculation: Speculation,
    pub(crate) draft_length: Option<usize>,
    pub(crate) draft_width: Option<usize>,
    /// Which drafters may serve it, by [`DraftKind::ALL`]; `None`: all.
    pub(crate) drafters: Option<[bool; DraftKind::COUNT]>,
    pub(crate) history: History,
    pub(crate) time_limit: Option<Duration>,
    /// How long the pair stays loaded after it; `None`: as configured.
    pub(crate) keep_alive: Option<KeepAlive>,
}

/// What to continue.
#[derive(Debug)]
pub(crate) enum Input {
    Text(String),
    TokenIds(Vec<u32>),
    Chat(Vec<v1::ChatMessage>),
}

/// Whose finished texts help to guess.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum History {
    /// Those of the calling process.
    Process,
    /// Those of everybody who names this history.
    Named(String),
    /// None.
    Off,
}

/// Whether to draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speculation {
    On,
    Off,
    Required,
}

/// Collects what is wrong with a message, so that a client learns everything at once.
#[derive(Debug, Default)]
pub(super) struct Violations(Vec<FieldViolation>);

impl Violations {
    pub(super) fn check(&mut self, holds: bool, field: &str, problem: impl FnOnce() -> String) {
        // One message can have millions of things wrong with it.
        if !holds && self.0.len() < MAX_VIOLATIONS {
            self.0.push(FieldViolation::new(field, problem()));
        }
    }
}

impl Plan {
    /// Checks a request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT with a `BadRequest` that names every field that is not possible.
    pub(crate) fn new(request: v1::GenerateRequest) -> Result<Self, Status> {
        let mut bad = Violations::default();
        check_request_id(&request.request_id, &mut bad);
        let input = input(request.input, &mut bad);
        let params = request.sampling_params.unwrap_or_default();
        let stop = stop_conditions(&params, &mut bad);
        let logprobs = logprobs(&params, &mut bad);
        let sampling = sampling(params, &mut bad);
        let speculation = speculation(request.speculation, &mut bad);
        if let Some(length) = request.draft_length {
            bad.check(length as usize <= MAX_DRAFT_LENGTH, "draft_length", || {
                format!("{length} is over {MAX_DRAFT_LENGTH}")
            });
        }
        bad.check(request.draft_width != Some(0), "draft_width", || {
            "is 0; at least one continuation is needed, or speculation off".to_owned()
        });
        let drafters = drafters(&request.draft_methods, &mut bad);
        let history = history(request.history, &mut bad);
        let time_limit = request
            .time_limit
            .and_then(|limit| time_limit(&limit, &mut bad));
        let keep_alive = request.keep_alive.and_then(|limit| {
            let read = read_keep_alive(limit);
            bad.check(read.is_some(), "keep_alive", || {
                "is out of range".to_owned()
            });
            read
        });
        match input {
            Some(input) if bad.0.is_empty() => Ok(Self {
                pair: request.pair,
                request_id: request.request_id,
                input,
                sampling,
                stop,
                logprobs,
                speculation,
                draft_length: request.draft_length.map(|length| length as usize),
                draft_width: request.draft_width.map(|width| width as usize),
                drafters,
                history,
                time_limit,
                keep_alive,
            }),
            _ => Err(errors::invalid_fields(bad.0)),
        }
    }
}

/// The id goes into log lines, so it has to be short and on one line.
fn check_request_id(id: &str, bad: &mut Violations) {
    bad.check(id.len() <= MAX_REQUEST_ID_BYTES, "request_id", || {
        format!("{} bytes are over {MAX_REQUEST_ID_BYTES}", id.len())
    });
    bad.check(!id.chars().any(char::is_control), "request_id", || {
        "has a control character".to_owned()
    });
}

/// Returns `None` exactly where it reported a violation.
fn input(input: Option<v1::generate_request::Input>, bad: &mut Violations) -> Option<Input> {
    use v1::generate_request::Input as Wire;
    let before = bad.0.len();
    let input = match input {
        Some(Wire::Text(text)) => {
            bad.check(!text.is_empty(), "text", || {
                "is empty; there is nothing to continue".to_owned()
            });
            Input::Text(text)
        }
        Some(Wire::TokenIds(tokens)) => {
            bad.check(!tokens.ids.is_empty(), "token_ids.ids", || {
                "is empty; there is nothing to continue".to_owned()
            });
            Input::TokenIds(tokens.ids)
        }
        Some(Wire::Chat(chat)) => {
            bad.check(!chat.messages.is_empty(), "chat.messages", || {
                "is empty; at least one is needed".to_owned()
            });
            for (index, message) in chat.messages.iter().enumerate() {
                bad.check(
                    !message.role.is_empty(),
                    &format!("chat.messages[{index}].role"),
                    || "is empty; usual are system, user and assistant".to_owned(),
                );
            }
            Input::Chat(chat.messages)
        }
        None => {
            bad.check(false, "input", || {
                "is missing; one of text, token_ids and chat is needed".to_owned()
            });
            return None;
        }
    };
    (bad.0.len() == before).then_some(input)
}

fn speculation(value: i32, bad: &mut Violations) -> Speculation {
    match v1::Speculation::try_from(value) {
        Ok(v1::Speculation::Unspecified | v1::Speculation::On) => Speculation::On,
        Ok(v1::Speculation::Off) => Speculation::Off,
        Ok(v1::Speculation::Required) => Speculation::Required,
        Err(_) => {
            bad.check(false, "speculation", || {
                format!("{value} is no value of tandem.v1.Speculation")
            });
            Speculation::On
        }
    }
}

fn drafters(methods: &[i32], bad: &mut Violations) -> Option<[bool; DraftKind::COUNT]> {
    let mut allowed = [false; DraftKind::COUNT];
    bad.check(methods.len() <= MAX_DRAFT_METHODS, "draft_methods", || {
        format!("{} are over {MAX_DRAFT_METHODS}", methods.len())
    });
    let methods = &methods[..methods.len().min(MAX_DRAFT_METHODS)];
    for (index, method) in methods.iter().enumerate() {
        let kind = match v1::DraftMethod::try_from(*method) {
            Ok(v1::DraftMethod::Model) => DraftKind::Model,
            Ok(v1::DraftMethod::Self_) => DraftKind::SelfDraft,
            Ok(v1::DraftMethod::Lookup) => DraftKind::Lookup,
            Ok(v1::DraftMethod::Unspecified) | Err(_) => {
                bad.check(false, &format!("draft_methods[{index}]"), || {
                    format!("{method} names no drafter of tandem.v1.DraftMethod")
                });
                continue;
            }
        };
        allowed[kind.index()] = true;
    }
    (!methods.is_empty()).then_some(allowed)
}

fn history(name: Option<String>, bad: &mut Violations) -> History {
    match name {
        None => History::Process,
        Some(name) if name.is_empty() => History::Off,
        Some(name) => {
            bad.check(name.len() <= MAX_HISTORY_BYTES, "history", || {
                format!("{} bytes are over {MAX_HISTORY_BYTES}", name.len())
            });
            History::Named(name)
        }
    }
}

fn time_limit(limit: &prost_types::Duration, bad: &mut Violations) -> Option<Duration> {
    let duration = Duration::try_from(*limit)
        .ok()
        .filter(|duration| !duration.is_zero());
    bad.check(duration.is_some(), "time_limit", || {
        "has to be more than 0".to_owned()
    });
    duration
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
