//! Errors as messages on standard error and exit codes.

use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use tandem_bench::BenchError;
use tandem_client::launch::LaunchError;
use tandem_client::v1::FailedPair;
use tandem_client::{Error, PathsError};
use tandem_launchd::ServiceError;
use tandem_models::{ModelError, PullError};
use tandem_prepared::StoreError;

use crate::exit::Exit;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Client(#[from] Error),
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Pull(#[from] PullError),
    /// It was said of each model why.
    #[error("not all models could be fetched")]
    NotPulled,
    #[error(transparent)]
    Cache(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(
        "the service was started, but does not answer: {source}{}; `tandem service logs` says why",
        after(last_end)
    )]
    ServiceDown { source: Error, last_end: String },
    #[error("`{program}` ended with {status}")]
    Tool { program: String, status: ExitStatus },
    #[error("the daemon would not start: {0}")]
    Config(String),
    #[error(transparent)]
    Bench(#[from] BenchError),
    #[error(
        "the methods did not all give the same texts, which the daemon promises; the report says where"
    )]
    TextsDiffer,
    #[error("no prepared weights are called `{0}`; `tandem cache list` shows what there is")]
    NotCached(String),
    /// The page has said what.
    #[error("not everything is as it should be")]
    Unwell,
    #[error("{0}")]
    Usage(String),
    #[error("cannot {action}: {source}")]
    Io { action: String, source: io::Error },
    #[error("there is no log at `{}`; only a daemon started in the background writes one", .0.display())]
    NoLog(PathBuf),
    #[error(
        "the daemon (process {pid}) did not end within {limit_s} s; it may still be finishing requests"
    )]
    StillRunning { pid: u32, limit_s: u64 },
    #[error("{}", still_failed(.0))]
    StillFailed(Vec<FailedPair>),
    #[error("the daemon runs, but could not load its default pair `{pair}`: {error}")]
    NotLoaded { pair: String, error: String },
    /// Whoever read standard output went away; that is their right and no error.
    #[error("standard output was closed")]
    OutputClosed,
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            action: action.into(),
            source,
        }
    }

    /// Tells the user, unless there is nothing to tell, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let is_told = matches!(
            self,
            Self::OutputClosed | Self::Interrupted | Self::Unwell | Self::NotPulled
        );
        if !is_told {
            say!("tandem: {self}");
        }
        ExitCode::from(self.exit().code())
    }

    fn exit(&self) -> Exit {
        match self {
            Self::OutputClosed => Exit::Done,
            Self::Client(error) | Self::Bench(BenchError::Client(error)) => client_exit(error),
            Self::Bench(error) => bench_exit(error),
            Self::Usage(_) => Exit::Usage,
            Self::Paths(_) | Self::Config(_) | Self::NotLoaded { .. } | Self::StillFailed(_) => {
                Exit::Config
            }
            Self::Service(
                ServiceError::NoCommand { .. }
                | ServiceError::NoSession { .. }
                | ServiceError::NoDomain { .. },
            )
            | Self::ServiceDown { .. } => Exit::Unavailable,
            Self::Pull(error) => pull_exit(error),
            Self::NotPulled => Exit::NoModel,
            Self::StillRunning { .. } => Exit::TimedOut,
            Self::Interrupted => Exit::Interrupted,
            Self::Io { .. }
            | Self::NoLog(_)
            | Self::Cache(_)
            | Self::Service(_)
            | Self::Tool { .. }
            | Self::TextsDiffer
            | Self::Unwell
            | Self::NotCached(_) => Exit::Failed,
        }
    }
}

/// Words which pairs could not be loaded, and why.
fn still_failed(pairs: &[FailedPair]) -> String {
    let each = |failed: &FailedPair| format!("pair \"{}\": {}", failed.pair, failed.error);
    let each: Vec<String> = pairs.iter().map(each).collect();
    each.join("; ")
}

/// Words how a daemon ended, where that is known.
fn after(last_end: &str) -> String {
    if last_end.is_empty() {
        return String::new();
    }
    format!("; it ended last with {last_end}")
}

fn pull_exit(error: &PullError) -> Exit {
    match error {
        PullError::Model(ModelError::Syntax { .. } | ModelError::Choice(_)) => Exit::Usage,
        PullError::Model(ModelError::NoHome) => Exit::Config,
        PullError::Model(_) => Exit::Failed,
        PullError::NoSuchPath { .. } | PullError::Failed { .. } => Exit::NoModel,
    }
}

fn bench_exit(error: &BenchError) -> Exit {
    match error {
        BenchError::Prompts { .. } | BenchError::Nothing(_) | BenchError::Report { .. } => {
            Exit::Usage
        }
        BenchError::SocketPath(_) | BenchError::NotLoaded { .. } => Exit::Config,
        BenchError::Spawn { .. } | BenchError::Exited { .. } | BenchError::TimedOut { .. } => {
            Exit::Unavailable
        }
        _ => Exit::Failed,
    }
}

fn client_exit(error: &Error) -> Exit {
    match error {
        Error::Paths(_)
        | Error::SocketPathNotUtf8 { .. }
        | Error::PairNotLoaded { .. }
        | Error::ReloadFailed { .. } => Exit::Config,
        // The daemon says so by its own exit code; scripts should hear it.
        Error::Launch(LaunchError::Exited { status, .. })
            if status.code() == Some(Exit::Config.code().into()) =>
        {
            Exit::Config
        }
        Error::InvalidRequest { .. } | Error::ContextOverflow { .. } => Exit::Usage,
        Error::DeadlineExceeded { .. } => Exit::TimedOut,
        Error::Launch(_)
        | Error::DaemonUnavailable { .. }
        | Error::UntrustedSocket(_)
        | Error::Ending { .. }
        | Error::Silent { .. }
        | Error::NotReady { .. } => Exit::Unavailable,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests;
