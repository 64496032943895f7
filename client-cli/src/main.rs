//! `tandem`: text generation, and the daemon behind it, from the command line.
//!
//! Owns arguments, what people and scripts see, and exit codes. Must not know how a call is made or a model run: calls
//! go through `tandem-client`, and `daemon run` hands over to `tandem-daemon`.
//!
//! Map: `args` is the command line as types; `commands` has one file per subcommand; `startup` brings the daemon up;
//! `output` alone writes to standard output and standard error, as `visible` has it; `failure` turns errors into exit codes,
//! of which `exit` has the table.

#![deny(clippy::print_stderr)] // it panics where standard error cannot be written; `say!` does not

// First: its `say!` is that of all modules below.
#[macro_use]
mod output;

mod args;
mod commands;
mod exit;
mod failure;
mod json;
mod progress;
mod startup;
mod summary;
mod visible;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, DaemonCommand};
use failure::Failure;
use tandem_client::Paths;

fn main() -> ExitCode {
    // What meets a limit of the process while it downloads is an error, and leaves what it can go on from.
    #[cfg(feature = "daemon")]
    tandem_daemon::platform::limits_are_errors();
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return args::refuse(&error),
    };
    match command {
        #[cfg(feature = "daemon")]
        Command::Daemon(DaemonCommand::Run(args)) => tandem_daemon::cli::main(&args),
        Command::Pull(args) => match Paths::from_env() {
            Ok(paths) => end(commands::pull::run(args, &paths.models_dir())),
            Err(error) => Failure::from(error).report(),
        },
        Command::Cache(command) => end(commands::cache::run(&command)),
        command => client_main(command),
    }
}

/// Runs everything that is a client of the daemon.
fn client_main(command: Command) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(source) => return Failure::io("start the runtime", source).report(),
    };
    let done = runtime.block_on(dispatch(command));
    // A download that a time limit ended would be waited for otherwise.
    runtime.shutdown_background();
    end(done)
}

fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Bench(args) => commands::bench::run(args).await,
        Command::Run(args) => commands::run::run(args).await,
        Command::Chat(args) => commands::chat::run(args).await,
        Command::Status(args) => commands::status::run(args).await,
        Command::Reload(args) => commands::reload::run(args).await,
        Command::Doctor(args) => commands::doctor::run(&args).await,
        Command::Tokenize(args) => commands::tokenize::run(args).await,
        Command::Pull(_) | Command::Cache(_) => {
            unreachable!("`main` does without the client's runtime for these")
        }
        Command::Service(command) => commands::service::run(command).await,
        Command::Completions { shell } => commands::completions::run(shell),
        Command::Daemon(command) => match command {
            DaemonCommand::Start => commands::daemon::start().await,
            DaemonCommand::Stop(args) => commands::daemon::stop(args).await,
            DaemonCommand::Restart(args) => commands::daemon::restart(args).await,
            DaemonCommand::Logs(args) => commands::logs::run(args).await,
            #[cfg(feature = "daemon")]
            DaemonCommand::Run(_) => {
                unreachable!("`main` runs the daemon outside of the client's runtime")
            }
        },
    }
}
