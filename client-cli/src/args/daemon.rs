//! `tandem daemon` as types.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::duration;

/// What `tandem daemon` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start the daemon in the background and wait until it serves
    Start,
    /// Let running requests finish, then end the daemon; one that does not end in that time is killed
    Stop(StopArgs),
    /// Stop the daemon where one runs, and start it
    Restart(StopArgs),
    /// Print the log of a daemon that was started in the background
    Logs(LogsArgs),
    /// Run the daemon here, in the foreground
    #[cfg(feature = "daemon")]
    Run(tandem_daemon::cli::Args),
}

/// Arguments of `tandem daemon stop` and `restart`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Wait at most this long for the daemon to end, such as 90, 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Arguments of `tandem daemon logs` and `tandem service logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Go on printing what is added, until interrupted
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Begin this many lines before the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200)]
    pub(crate) lines: usize,
}
