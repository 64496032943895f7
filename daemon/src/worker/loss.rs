//! Why an engine is given up, and why one does not take a request.

use std::fmt;

use tandem_engine::engine::{RequestError, StepError};
use tandem_model::load::WeightsDamage;
use tonic::Status;

use crate::errors;

/// What ended an engine.
pub(super) enum Loss {
    Step(StepError),
    /// The target's prepared weights are no longer what they were.
    Weights(WeightsDamage),
    Panic,
}

impl From<StepError> for Loss {
    fn from(error: StepError) -> Self {
        Self::Step(error)
    }
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
            Self::Weights(damage) => write!(
                f,
                "the file of the target's prepared weights was damaged while it was mapped: {damage}"
            ),
            Self::Panic => f.write_str("its engine stopped on an internal error"),
        }
    }
}

impl Loss {
    /// Whether another load has nothing to do with it: the file is made anew.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Weights(_))
    }

    /// What the requests hear that were running.
    pub(super) fn status(&self, pair: &str) -> Status {
        match self {
            Self::Step(error) => errors::step_failed(pair, &error.to_string()),
            Self::Weights(_) => errors::weights_lost(pair, &self.to_string()),
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
