//! Errors as messages on standard error and exit codes.

use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use tandem_bench::BenchError;
use tandem_client::launch::LaunchError;
use tandem_client::{Error, PathsError};
use tandem_launchd::ServiceError;
use tandem_models::PullError;
use tandem_prepared::StoreError;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;
const EXIT_UNAVAILABLE: u8 = 69;
const EXIT_CONFIG: u8 = 78;
const EXIT_INTERRUPTED: u8 = 130;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Client(#[from] Error),
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Pull(#[from] PullError),
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
        if !matches!(self, Self::OutputClosed | Self::Interrupted | Self::Unwell) {
            eprintln!("tandem: {self}");
        }
        ExitCode::from(self.exit_code())
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Client(error) | Self::Bench(BenchError::Client(error)) => client_exit_code(error),
            Self::Bench(error) => bench_exit_code(error),
            Self::Usage(_) => EXIT_USAGE,
            Self::Paths(_) | Self::Config(_) => EXIT_CONFIG,
            Self::Service(ServiceError::NoCommand { .. } | ServiceError::NoSession { .. })
            | Self::ServiceDown { .. } => EXIT_UNAVAILABLE,
            // Without its models, the daemon could not serve.
            Self::Pull(_) | Self::NotLoaded { .. } => EXIT_UNAVAILABLE,
            Self::Interrupted => EXIT_INTERRUPTED,
            Self::Io { .. }
            | Self::NoLog(_)
            | Self::StillRunning { .. }
            | Self::Cache(_)
            | Self::Service(_)
            | Self::Tool { .. }
            | Self::TextsDiffer
            | Self::Unwell
            | Self::NotCached(_) => EXIT_FAILED,
        }
    }
}

/// Words how a daemon ended, where that is known.
fn after(last_end: &str) -> String {
    if last_end.is_empty() {
        return String::new();
    }
    format!("; it ended last with {last_end}")
}

fn bench_exit_code(error: &BenchError) -> u8 {
    match error {
        BenchError::Prompts { .. } | BenchError::Nothing(_) | BenchError::Report { .. } => {
            EXIT_USAGE
        }
        BenchError::SocketPath(_) => EXIT_CONFIG,
        BenchError::Spawn { .. }
        | BenchError::Exited { .. }
        | BenchError::NotLoaded { .. }
        | BenchError::TimedOut { .. } => EXIT_UNAVAILABLE,
        _ => EXIT_FAILED,
    }
}

fn client_exit_code(error: &Error) -> u8 {
    match error {
        Error::Paths(_) | Error::SocketPathNotUtf8 { .. } => EXIT_CONFIG,
        // The daemon says so by its own exit code; scripts should hear it.
        Error::Launch(LaunchError::Exited { status, .. })
            if status.code() == Some(EXIT_CONFIG.into()) =>
        {
            EXIT_CONFIG
        }
        Error::Launch(_) | Error::DaemonUnavailable { .. } | Error::NotReady { .. } => {
            EXIT_UNAVAILABLE
        }
        _ => EXIT_FAILED,
    }
}
