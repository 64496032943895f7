//! Every way in which a call can fail, by what the caller can do about it.

mod status;

use std::path::PathBuf;
use std::time::Duration;

use crate::launch::LaunchError;
use crate::{PathsError, UntrustedSocket, v1};

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing answers on the socket.
    #[error(
        "no daemon answers on `{}` ({reason}); start it with `tandem daemon start`",
        socket.display()
    )]
    DaemonUnavailable {
        /// The socket that was tried.
        socket: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// A daemon has the socket, takes no more requests, and ends when those that run are done.
    #[error(
        "the daemon{} is ending and takes no more requests: it finishes those that run, for {} s at most; try again then, or \
         wait for a new one with `tandem daemon start`",
        process(*pid), left.as_secs()
    )]
    Ending {
        /// Its process, where it is known.
        pid: Option<u32>,
        /// How long it may still take to finish requests.
        left: Duration,
    },
    /// A daemon lives, and says nothing.
    #[error(
        "the daemon{} has not answered for {:.0} s{}; `tandem daemon restart` ends it and starts another",
        process(*pid), waited.as_secs_f64(), stopped(*pid, *is_stopped)
    )]
    Silent {
        /// Its process, where it is known.
        pid: Option<u32>,
        /// Whether a signal has stopped it.
        is_stopped: bool,
        /// How long an answer was waited for.
        waited: Duration,
    },
    /// The socket is not ours, or who listens is not.
    #[error(transparent)]
    UntrustedSocket(#[from] UntrustedSocket),
    /// The connection ended in the middle of a call.
    #[error("the connection to the daemon broke ({reason}); it may have ended or been restarted")]
    ConnectionLost {
        /// What was noticed.
        reason: String,
    },
    /// The daemon is loading its models, or ending.
    #[error("the daemon is not ready: {message}{}", hint(*retry_after))]
    NotReady {
        /// What it said.
        message: String,
        /// When it asks to be called again.
        retry_after: Option<Duration>,
    },
    /// The daemon has as many requests as it takes.
    #[error("the daemon has no room for the request: {message}{}", hint(*retry_after))]
    QueueFull {
        /// What it said.
        message: String,
        /// When it asks to be called again.
        retry_after: Option<Duration>,
    },
    /// Prompt and output do not fit the context of the target.
    #[error("{}", overflow(*prompt_tokens, *max_tokens, *context_length))]
    ContextOverflow {
        /// Tokens of the prompt.
        prompt_tokens: u64,
        /// Tokens to generate.
        max_tokens: u64,
        /// Most tokens of prompt and output together.
        context_length: u64,
    },
    /// No configured pair has this name.
    #[error("{message}; `tandem status` lists the pairs")]
    UnknownPair {
        /// The name.
        pair: String,
        /// What the daemon said.
        message: String,
    },
    /// Fields of the request are not possible.
    #[error("the request is not valid: {message}")]
    InvalidRequest {
        /// What the daemon said.
        message: String,
        /// Which fields, and what is wrong with each.
        fields: Vec<FieldError>,
    },
    /// Speculation was required, but nothing drafts.
    #[error("{message}; drop the requirement to decode plainly")]
    SpeculationUnavailable {
        /// What the daemon said.
        message: String,
    },
    /// The pair could not be loaded, and will not be until a person changes the configuration or a file.
    #[error("{message}")]
    PairNotLoaded {
        /// The name of the pair.
        pair: String,
        /// What the daemon said.
        message: String,
    },
    /// The pair cannot serve this request, such as chat messages for a model without a chat template.
    #[error("{message}")]
    PairUnusable {
        /// What the daemon said.
        message: String,
    },
    /// Something is wrong with the configuration, and a reload changed nothing.
    #[error("{message}")]
    ReloadFailed {
        /// What the daemon said.
        message: String,
    },
    /// The daemon belongs to another user.
    #[error("the daemon refused the call: {message}")]
    PermissionDenied {
        /// What it said.
        message: String,
    },
    /// The request's deadline passed.
    #[error("the deadline passed: {message}")]
    DeadlineExceeded {
        /// Which limit.
        message: String,
    },
    /// The daemon ended the stream without a final message.
    #[error("the daemon ended the answer without a final message; its log may say why")]
    UnexpectedEnd,
    /// Any other status.
    #[error("the daemon failed the call ({code:?}): {message}")]
    Failed {
        /// The status code.
        code: tonic::Code,
        /// What the daemon said.
        message: String,
    },
    /// The paths of the daemon could not be told.
    #[error(transparent)]
    Paths(#[from] PathsError),
    /// The socket path cannot be handed to the transport.
    #[error("the socket path `{}` is not UTF-8; set TANDEM_SOCKET to one that is", socket.display())]
    SocketPathNotUtf8 {
        /// The path.
        socket: PathBuf,
    },
    /// The daemon could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The blocking client's runtime could not be made.
    #[error("cannot start the client's runtime: {source}")]
    Runtime {
        /// What the system said.
        source: std::io::Error,
    },
}

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field, as in the service definition.
    pub field: String,
    /// What is wrong with it.
    pub description: String,
}

impl Error {
    /// Says whether nothing answered on the socket, or nothing any more.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::DaemonUnavailable { .. } | Self::ConnectionLost { .. }
        )
    }

    /// Returns when the daemon asks to be called again, where it does.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotReady { retry_after, .. } | Self::QueueFull { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }

    /// Says whether the same call may succeed a little later without anybody changing anything.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_unavailable() || matches!(self, Self::NotReady { .. })
    }

    pub(crate) fn deadline(limit: Duration) -> Self {
        Self::DeadlineExceeded {
            message: format!("no complete answer within {}", time(limit)),
        }
    }

    /// Says of a deadline that passed how long it was given: what was left of it when the call was made, which is what the daemon
    /// saw, nobody asked for.
    pub(crate) fn of_limit(self, limit: Duration) -> Self {
        match self {
            Self::DeadlineExceeded { .. } => Self::deadline(limit),
            error => error,
        }
    }
}

/// The daemon's answer to why a pair is not loaded, where it gave one.
pub(crate) fn load_failure(pair: &v1::PairInfo) -> Option<String> {
    let idle = pair.residency() == v1::Residency::Cold;
    (idle && !pair.error.is_empty()).then(|| pair.error.clone())
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

fn stopped(pid: Option<u32>, is_stopped: bool) -> String {
    match (pid, is_stopped) {
        (Some(pid), true) => format!(": it is stopped, and `kill -CONT {pid}` lets it go on"),
        _ => String::new(),
    }
}

/// Writes a time as somebody would give it.
fn time(limit: Duration) -> String {
    if limit < Duration::from_secs(1) {
        return format!("{} ms", limit.as_secs_f64() * 1e3);
    }
    format!("{} s", limit.as_secs_f64())
}

/// A request for one token is what a prompt that fills the context comes to, whether one was asked for or none.
fn overflow(prompt_tokens: u64, max_tokens: u64, context_length: u64) -> String {
    if prompt_tokens >= context_length || max_tokens <= 1 {
        return format!(
            "the prompt has {prompt_tokens} tokens, which leaves no room for an answer in the context of {context_length} \
             tokens; shorten the prompt"
        );
    }
    format!(
        "the prompt has {prompt_tokens} tokens, which leaves no room for {max_tokens} generated tokens in the context of \
         {context_length} tokens; shorten the prompt or ask for fewer tokens"
    )
}

fn hint(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |pause| {
        format!("; try again in {:.1} s", pause.as_secs_f64())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_said_as_it_was_given() {
        for (given, said) in [
            (50, "50 ms"),
            (100, "100 ms"),
            (1500, "1.5 s"),
            (90_000, "90 s"),
        ] {
            let limit = Duration::from_millis(given);
            let late = Error::DeadlineExceeded {
                message: "the request's deadline of 99 ms passed".to_owned(),
            };
            let error = late.of_limit(limit).to_string();
            assert!(error.ends_with(&format!("within {said}")), "{error}");
        }
    }

    #[test]
    fn only_tokens_that_were_asked_for_are_spoken_of() {
        for (prompt_tokens, max_tokens) in [(8192, 1), (9000, 1), (9000, 64)] {
            let said = overflow(prompt_tokens, max_tokens, 8192);
            assert!(
                said.contains("no room for an answer") && !said.contains("generated"),
                "{said}"
            );
        }
        assert!(overflow(8000, 500, 8192).contains("500 generated tokens"));
    }
}
