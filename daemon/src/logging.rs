//! Where log lines go and what they look like: standard error, for people or as JSON, one event a line.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

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
/// `target=level`.
pub(crate) fn init(format: LogFormat, level: &str) -> Result<(), ParseError> {
    let filter = EnvFilter::try_new(level)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
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
