//! What a check found, as the command shows it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Ok,
    Skipped,
    Warning,
    Failed,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) section: &'static str,
    pub(super) check: String,
    pub(super) mark: Mark,
    pub(super) message: String,
    /// What to do about it, where the message does not say.
    pub(super) advice: Option<String>,
    pub(super) values: BTreeMap<&'static str, Value>,
}

impl Mark {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Finding {
    pub(super) fn ok(section: &'static str, check: &str, message: impl Into<String>) -> Self {
        Self::new(section, check, Mark::Ok, message.into())
    }

    pub(super) fn skipped(section: &'static str, check: &str, message: impl Into<String>) -> Self {
        Self::new(section, check, Mark::Skipped, message.into())
    }

    pub(super) fn warning(section: &'static str, check: &str, message: impl Into<String>) -> Self {
        Self::new(section, check, Mark::Warning, message.into())
    }

    pub(super) fn failed(section: &'static str, check: &str, message: impl Into<String>) -> Self {
        Self::new(section, check, Mark::Failed, message.into())
    }

    fn new(section: &'static str, check: &str, mark: Mark, message: String) -> Self {
        Self {
            section,
            check: check.to_owned(),
            mark,
            message,
            advice: None,
            values: BTreeMap::new(),
        }
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(super) fn value(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.values.insert(name, value.into());
        self
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "section": self.section,
            "check": self.check,
            "mark": self.mark.word(),
            "message": self.message,
            "advice": self.advice,
            "values": self.values,
        })
    }
}

#[cfg(feature = "daemon")]
impl From<tandem_daemon::doctor::Finding> for Finding {
    fn from(found: tandem_daemon::doctor::Finding) -> Self {
        use tandem_daemon::doctor::Mark as Found;
        Self {
            section: found.section,
            check: found.check,
            mark: match found.mark {
                Found::Ok => Mark::Ok,
                Found::Skipped => Mark::Skipped,
                Found::Warning => Mark::Warning,
                Found::Failed => Mark::Failed,
            },
            message: found.message,
            advice: found.advice,
            values: found.values,
        }
    }
}
