//! Where log lines go and what they look like: standard error, for people or as JSON, one event a line.
//!
//! What reports must not end or hold up what it reports on. So nobody who logs writes: lines go to a thread of their own,
//! which sleeps while there are none, and which alone waits where standard error is a pipe that nobody reads, or a disk
//! that is full. Where it cannot be written to at all, lines are lost, and that is all.

mod file;
mod sink;

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

pub(crate) use sink::{flush, tell};

/// What a log line looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, fields at the top level.
    Json,
}

/// Starts logging for the whole process; a second call changes nothing. `level` is a level or a list of
/// `target=level`. Where standard error is the file at `own`, that is kept from growing for ever.
pub(crate) fn init(format: LogFormat, level: &str, own: Option<PathBuf>) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(level)?;
    let Some(sink) = sink::start(own) else {
        // Without a thread to carry lines, there are none.
        return Ok(());
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || sink.clone())
        // It would tell of a line that could not be written on standard error, and panic where that fails too.
        .log_internal_errors(false)
        .with_target(false);
    let _already_started = match format {
        LogFormat::Text => builder.with_ansi(stderr().is_terminal()).try_init(),
        LogFormat::Json => builder
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .try_init(),
    };
    // A panic becomes a log line like any other failure.
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
