//! `tandem service` as types.

use clap::{Args, Subcommand};

use super::LogsArgs;

/// What `tandem service` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Have the system start the daemon when a program wants text
    ///
    /// Writes a launchd agent to ~/Library/LaunchAgents (macOS), or two units to ~/.config/systemd/user (Linux), and
    /// loads them: from then on, and after each login, the system listens on Tandem's socket and starts the daemon with
    /// the first connection. Done again, it takes over what has changed: the place of this program, or of files that
    /// TANDEM_*, XDG_* and HF_* variables name. A daemon that runs in the background ends first, after its requests.
    Install(InstallArgs),
    /// Take the service back: end the daemon after its requests, and remove what `install` wrote; models, settings and
    /// logs stay
    Uninstall,
    /// Start the daemon now, rather than with the first request
    Start,
    /// End the daemon after its requests, and listen no more until `start` or the next login
    Stop,
    /// End the daemon after its requests and start it anew; new requests wait meanwhile
    Restart,
    /// Show whether the service is installed, listens and runs
    Status(ServiceStatusArgs),
    /// Print the daemon's log
    Logs(LogsArgs),
}

/// Arguments of `tandem service install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Print the files that would be written, and their paths on standard error, and do nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Start the daemon at each login, not with the first request; on macOS it always does
    #[arg(long)]
    pub(crate) at_login: bool,
    /// Do not fetch models that are missing; the daemon does not, either, and says which it misses
    #[arg(long)]
    pub(crate) no_fetch: bool,
}

/// Arguments of `tandem service status`.
#[derive(Debug, Args)]
pub(crate) struct ServiceStatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
