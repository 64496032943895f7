//! The daemon's own binary; everything is in the library.

use std::process::ExitCode;

use clap::Parser;

/// Keeps pairs of models resident and serves them over gRPC on a Unix socket.
#[derive(Debug, Parser)]
#[command(name = "tandemd", version)]
struct Cli {
    #[command(flatten)]
    args: tandem_daemon::cli::Args,
}

fn main() -> ExitCode {
    tandem_daemon::cli::main(&Cli::parse().args)
}
