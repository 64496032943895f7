//! Why the daemon could not be started.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::log::quote;

/// Why the daemon could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// There is no daemon to start.
    #[error(
        "cannot find `tandemd`: {tried}; install it beside this program, or set TANDEM_DAEMON to its path"
    )]
    NotFound {
        /// Where it was looked for.
        tried: String,
    },
    /// The log file cannot be written.
    #[error("cannot open the daemon's log `{}`: {source}", path.display())]
    Log {
        /// The log file or its directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process could not be started.
    #[error("cannot start `{}`: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process ended before it served.
    #[error(
        "the daemon ended before it served ({status}){}",
        quote(log_file, log_tail)
    )]
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// Its log.
        log_file: PathBuf,
        /// The last lines it wrote.
        log_tail: String,
    },
    /// This user's daemon has another socket than the one that was called.
    #[error("this user's daemon serves `{}`", socket.display())]
    Elsewhere {
        /// Its socket.
        socket: PathBuf,
    },
    /// The daemon did not come to serve in time.
    #[error(
        "the daemon did not serve within {} s and goes on trying; `tandem status` shows its state{}",
        limit.as_secs(), quote(log_file, log_tail)
    )]
    TimedOut {
        /// How long was waited.
        limit: Duration,
        /// Its log.
        log_file: PathBuf,
        /// The last lines it wrote.
        log_tail: String,
    },
}
