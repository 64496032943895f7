//! The command line as types.

mod daemon;
mod sampling;
mod service;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tandem_client::{GenerateRequest, v1};

use crate::commands::cache::CacheCommand;
use crate::commands::doctor::DoctorArgs;
use crate::exit::{self, Exit};
use crate::output;
use crate::visible::one_line;
pub(crate) use daemon::{DaemonCommand, LogsArgs, StopArgs};
use sampling::SamplingArgs;
pub(crate) use service::{InstallArgs, ServiceCommand, ServiceStatusArgs};

/// Generate text with models that stay in memory
#[derive(Debug, Parser)]
#[command(name = "tandem", version, max_term_width = 100, after_help = after_help())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const ENVIRONMENT: &str = "\
Environment: TANDEM_HOME puts all files under one directory; TANDEM_SOCKET and TANDEM_CONFIG name one file each;
TANDEM_DAEMON names the daemon to start. TANDEM_PRESSURE_FILE names a file in the format of /proc/pressure/memory, from
which the daemon reads memory pressure instead of asking the system.";

fn after_help() -> String {
    format!("{}{ENVIRONMENT}", exit::help())
}

/// Prints what there is instead of a command: help, or what is wrong with the arguments.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code());
    // An error quotes arguments, which a script may have from anywhere, and colours would hide them among its own.
    let quotes_hostile = std::env::args_os().any(|argument| {
        let argument = argument.to_string_lossy();
        one_line(&argument) != argument
    });
    if error.use_stderr() {
        if quotes_hostile {
            say!("{}", error.render());
        } else {
            let _unread = error.print();
        }
        return ExitCode::from(code);
    }
    match error.print().and_then(|()| io::stdout().flush()) {
        Ok(()) => ExitCode::from(code),
        Err(source) => output::not_written(source).report(),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer one prompt and exit
    Run(RunArgs),
    /// Hold a conversation: one line is one turn; /reset forgets it, /exit or Ctrl-D ends, Ctrl-C stops an answer
    Chat(ChatArgs),
    /// Show what the daemon is doing: memory, pairs, queues, totals
    Status(StatusArgs),
    /// Have the daemon read its configuration again, and say what changed or why nothing did
    Reload(ReloadArgs),
    /// Turn text into token ids
    Tokenize(TokenizeArgs),
    /// Fetch models, so that no request has to wait for them
    Pull(crate::commands::pull::Args),
    /// Measure what speculation gives on this machine: speed by method and kind of text, latency, memory, cost of steps
    ///
    /// Private daemons are started for it and end with it. They use the models and prepared weights that are here, and no
    /// network. Each method answers every prompt in turn, greedily; times and counts are the daemon's own.
    Bench(crate::commands::bench::Args),
    /// Check that Tandem can work here, on one page to send to others: machine, devices, kernels, memory, models, socket,
    /// service
    ///
    /// Works with and without a daemon or models, takes some seconds, and starts, changes and keeps nothing. Each line is ok,
    /// warning, FAILED or skipped, with what was seen and, below, what to do. The home directory is written as `~`. Exit
    /// code 0 where nothing failed, else 1.
    Doctor(DoctorArgs),
    /// List and remove prepared weights: models in the form that the CPU's kernels want
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Start, stop and watch the daemon
    #[command(subcommand)]
    Daemon(DaemonCommand),
    /// Have the system start the daemon when it is needed
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Print a script that completes arguments in a shell
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Prompt; several words are joined with spaces. A last word `-` stands for standard input, which follows after a blank
    /// line
    ///
    /// Without a prompt, standard input is the prompt. With one, `-` or `-f -` asks for it. A pipe to this command alone, such as
    /// that of `git diff | tandem run "…"`, is read too if it holds something at once, and so is a file that it was redirected
    /// from and that nobody has begun to read. The input of a loop around this command, and a pipe that stays open and empty,
    /// are left alone.
    pub(crate) prompt: Vec<String>,
    /// Read the prompt from a file, `-` for standard input; it follows the words after a blank line
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Send the text as it is, without the model's chat template
    #[arg(long, conflicts_with = "system")]
    pub(crate) raw: bool,
    /// Print one JSON object a line: each chunk, then the final message
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) generation: GenerationArgs,
}

/// What `run` and `chat` share.
#[derive(Debug, Args)]
pub(crate) struct GenerationArgs {
    /// Begin the conversation with this system message
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Decode plainly [default: draft where it pays]
    #[arg(long, conflicts_with_all = ["require_draft", "draft_length", "draft_method"], help_heading = "Speculation")]
    no_draft: bool,
    /// Fail where no draft is resident
    #[arg(long, help_heading = "Speculation")]
    require_draft: bool,
    /// Draft exactly this many tokens a step, 0 to 63 [default: what pays]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=63), help_heading = "Speculation")]
    draft_length: Option<u32>,
    /// Let only this drafter guess, such as lookup, which searches the text so far; repeatable, or separated by commas
    /// [default: all that the pair has]
    #[arg(
        long,
        value_name = "METHOD",
        value_enum,
        value_delimiter = ',',
        help_heading = "Speculation"
    )]
    draft_method: Vec<DraftMethod>,
    /// Let lookup guess from earlier answers that named this history, and add this one; '' for none [default: this
    /// process's own]
    #[arg(long, value_name = "NAME", help_heading = "Speculation")]
    history: Option<String>,
    /// Keep the pair loaded for this long after the answer, such as 5m, forever or never [default: as configured]
    #[arg(long, value_name = "TIME", value_parser = keep_alive)]
    keep_alive: Option<Duration>,
    /// Fail when the answer is not complete after this long, such as 90, 90s, 500ms or 5m; starting the daemon and loading
    /// count [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print no statistics and no progress on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What guesses ahead of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DraftMethod {
    /// The pair's smaller model
    Model,
    /// The target's own first layers
    #[value(name = "self")]
    Own,
    /// A search in the text so far, and in earlier ones
    Lookup,
}

/// Who serves the call.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Use this pair [default: the configured default pair]
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) pair: String,
    /// Fail where no daemon runs, rather than start one
    #[arg(long)]
    pub(crate) no_start: bool,
}

impl GenerationArgs {
    /// Applies the arguments to a request.
    pub(crate) fn apply(&self, request: GenerateRequest) -> GenerateRequest {
        let speculation = match (self.no_draft, self.require_draft) {
            (true, _) => v1::Speculation::Off,
            (_, true) => v1::Speculation::Required,
            _ => v1::Speculation::On,
        };
        let mut request = request
            .pair(&self.target.pair)
            .sampling(self.sampling.params())
            .speculation(speculation);
        if let Some(tokens) = self.draft_length {
            request = request.draft_length(tokens);
        }
        for method in &self.draft_method {
            request = request.draft_method(match method {
                DraftMethod::Model => v1::DraftMethod::Model,
                DraftMethod::Own => v1::DraftMethod::Self_,
                DraftMethod::Lookup => v1::DraftMethod::Lookup,
            });
        }
        if let Some(name) = &self.history {
            request = request.history(name);
        }
        if let Some(limit) = self.keep_alive {
            request = request.keep_alive(limit);
        }
        if let Some(limit) = self.timeout {
            request = request.deadline(limit);
        }
        request
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Then go on with what happens to pairs and memory, one line each, until interrupted or the daemon ends
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReloadArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TokenizeArgs {
    /// Text; several words are joined with spaces [default: standard input, as it is]
    pub(crate) text: Vec<String>,
    /// Print one token a line: its id, a tab, and its piece as a JSON string (U+FFFD for bytes that are not UTF-8)
    #[arg(long)]
    pub(crate) pieces: bool,
    /// Print one JSON object: token_ids, pieces as arrays of bytes, and what the template made of a conversation as rendered
    #[arg(long, conflicts_with = "pieces")]
    pub(crate) json: bool,
    /// Read special tokens spelled in the text as such [default: they stay text]
    #[arg(long)]
    pub(crate) parse_special: bool,
    /// Put the model's beginning-of-text token first, where it has one
    #[arg(long)]
    pub(crate) add_bos: bool,
    /// Take the text as a user's message, and show what the model's chat template makes of it: the prompt, a blank line, and
    /// its tokens
    #[arg(long, conflicts_with_all = ["parse_special", "add_bos"])]
    pub(crate) chat: bool,
    /// With --chat, begin the conversation with this system message
    #[arg(long, value_name = "TEXT", requires = "chat")]
    pub(crate) system: Option<String>,
    /// As --chat, for a whole conversation: a JSON array of {"role": …, "content": …} in a file, `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "chat", "parse_special", "add_bos"])]
    pub(crate) messages: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Parses how long a pair stays loaded.
fn keep_alive(text: &str) -> Result<Duration, String> {
    match text {
        "forever" => Ok(Duration::MAX),
        "never" | "0" => Ok(Duration::ZERO),
        _ => duration(text).map_err(|problem| format!("{problem}; or forever, or never")),
    }
}

/// Parses a number of seconds, or a number with the unit `ms`, `s`, `m` or `h`.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("the units are ms, s, m and h".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a number such as 90, 1.5m or 500ms".to_owned())?;
    match Duration::try_from_secs_f64(number * scale) {
        Ok(limit) if !limit.is_zero() => Ok(limit),
        _ => Err("expected more than no time, and less than for ever".to_owned()),
    }
}

#[cfg(test)]
mod tests;
