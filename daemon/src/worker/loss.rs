//! Why an engine is given up, and why one does not take a request.

use std::fmt;

use tandem_engine::engine::{RequestError, StepError};
use tonic::Status;

use crate::errors;

/// What ended an engine.
pub(super) enum Loss {
    Step(StepError),
    Panic,
}

/// Why a request does not get into the engine.
pub(super) enum Refusal {
    /// It requires speculation, and nothing drafts; why.
    Plain(String),
    Invalid(RequestError),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(error) => error.fmt(f),
            Self::Panic => f.write_str("its engine stopped on an internal error"),
        }
    }
}

impl Loss {
    /// What the requests hear that were running.
    pub(super) fn status(&self, pair: &str) -> Status {
        match self {
            Self::Step(error) => errors::step_failed(pair, &error.to_string()),
            Self::Panic => errors::engine_panicked(pair),
        }
    }
}

impl Refusal {
    /// What the request hears.
    pub(super) fn status(&self, pair: &str) -> Status {
        match self {
            Self::Plain(why) => errors::no_speculation(pair, why),
            Self::Invalid(error) => errors::request_refused(pair, error),
        }
    }
}
