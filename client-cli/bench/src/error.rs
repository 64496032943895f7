//! Why a benchmark, or what becomes of its report, failed.

use std::io;
use std::path::PathBuf;

/// Why a benchmark, or what becomes of its report, failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A call failed.
    #[error(transparent)]
    Client(#[from] tandem_client::Error),
    /// The socket of a private daemon cannot be where temporary files are.
    #[error("{0}; set TMPDIR to a shorter path")]
    SocketPath(tandem_client::PathsError),
    /// A private daemon could not be started.
    #[error("cannot start the private daemon `{}`: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A private daemon ended before it served.
    #[error(
        "the private daemon ({serving}) ended before it served ({status}); its log ends with:\n{log}"
    )]
    Exited {
        /// What it was to serve.
        serving: String,
        /// How it ended.
        status: String,
        /// The last lines it wrote.
        log: String,
    },
    /// A private daemon could not load the pair.
    #[error("the private daemon ({serving}) could not load the pair: {problem}")]
    NotLoaded {
        /// What it was to serve.
        serving: String,
        /// What the daemon said.
        problem: String,
    },
    /// A private daemon did not come to serve.
    #[error(
        "the private daemon ({serving}) did not serve within {limit_s} s; its log ends with:\n{log}"
    )]
    TimedOut {
        /// What it was to serve.
        serving: String,
        /// How long was waited, in seconds.
        limit_s: u64,
        /// The last lines it wrote.
        log: String,
    },
    /// The pair is not among those that the daemon serves.
    #[error("the daemon serves no pair `{name}`; it has {known}")]
    NoPair {
        /// What was asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// There is nothing to measure.
    #[error("{0}")]
    Nothing(String),
    /// A file of prompts cannot be used.
    #[error("line {line} of the prompts: {problem}")]
    Prompts {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A report cannot be read.
    #[error("`{}` is no report of `tandem bench`: {problem}", path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// What was to be done.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A chart cannot be drawn.
    #[error("cannot draw the chart `{name}`: {problem}")]
    Chart {
        /// Its file name.
        name: &'static str,
        /// What the drawing library said.
        problem: String,
    },
}

impl BenchError {
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}
