//! What a check found.

use std::collections::BTreeMap;

use serde_json::Value;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// As it should be.
    Ok,
    /// It could not be checked, for a reason that is no fault.
    Skipped,
    /// It works, but not as it could, or not for long.
    Warning,
    /// It does not work.
    Failed,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What the check belongs to, such as `memory`.
    pub section: &'static str,
    /// What was checked, such as `footprint`.
    pub check: String,
    /// How it is.
    pub mark: Mark,
    /// What was seen, with units.
    pub message: String,
    /// What to do about it, where the message does not say.
    pub advice: Option<String>,
    /// The numbers, for programs; bytes, seconds, or as the name says.
    pub values: BTreeMap<&'static str, Value>,
}

/// Starts a finding.
pub(super) fn of(section: &'static str, check: impl Into<String>) -> Draft {
    Draft {
        section,
        check: check.into(),
    }
}

/// Writes an error for people, on one line.
pub(super) fn error(error: &dyn std::error::Error) -> String {
    error.to_string().replace('\n', " ")
}

/// A finding of which it is not known yet how it is.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    section: &'static str,
    check: String,
}

impl Draft {
    pub(super) fn ok(self, message: impl Into<String>) -> Finding {
        self.with(Mark::Ok, message.into())
    }

    pub(super) fn skipped(self, message: impl Into<String>) -> Finding {
        self.with(Mark::Skipped, message.into())
    }

    pub(super) fn warning(self, message: impl Into<String>) -> Finding {
        self.with(Mark::Warning, message.into())
    }

    pub(super) fn failed(self, message: impl Into<String>) -> Finding {
        self.with(Mark::Failed, message.into())
    }

    pub(super) fn with(self, mark: Mark, message: String) -> Finding {
        Finding {
            section: self.section,
            check: self.check,
            mark,
            message,
            advice: None,
            values: BTreeMap::new(),
        }
    }
}

impl Finding {
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(super) fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.insert(name, value.into());
        self
    }
}
