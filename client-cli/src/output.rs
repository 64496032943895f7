//! Standard output and standard error: the only place that writes to them.
//!
//! Everything is shown as [`visible`] has it, whoever prints, so that new code cannot forget it. The one
//! exception is the answer itself where standard output is no terminal: a file or a program gets what the model said.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::visible;

/// Writes a line to standard error. Where that takes none, such as on a full disk or in a closed pipe, the line is lost:
/// it only tells of what is being done, and `eprintln!` would end that.
macro_rules! say {
    () => {
        $crate::output::tell(format_args!(""))
    };
    ($($arguments:tt)+) => {
        $crate::output::tell(format_args!($($arguments)+))
    };
}

pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let line = format!("{line}\n");
    // At once, so that lines of several processes do not mix.
    let _lost = io::stderr().write_all(visible::visible(&line).as_bytes());
}

/// Writes to standard error without ending the line, as a prompt does.
pub(crate) fn ask(text: &str) {
    let mut errors = io::stderr().lock();
    let _unread = write!(errors, "{}", visible::visible(text)).and_then(|()| errors.flush());
}

/// Standard output, flushed with every write: the reader sees each chunk as it comes.
#[derive(Debug)]
pub(crate) struct Output {
    out: io::Stdout,
    /// The beginning of a character whose end has not come yet.
    cut: Vec<u8>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            out: io::stdout(),
            cut: Vec::new(),
        }
    }

    /// Writes a piece of the answer: to a terminal as [`visible`] has it, elsewhere as it is.
    pub(crate) fn answer(&mut self, text: &str) -> Result<(), Failure> {
        if self.out.is_terminal() {
            self.text(text)
        } else {
            self.write(text.as_bytes())
        }
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.write(visible::visible(text).as_bytes())
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n"))
    }

    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        self.line(&json_text(value))
    }

    /// Writes bytes that may be anything, such as those of a log. A character may come in two pieces.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&all)
            && error.error_len().is_none()
        {
            self.cut = all.split_off(error.valid_up_to());
        }
        self.write(visible::visible_bytes(&all).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = self.out.lock();
        out.write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(not_written)
    }
}

/// Words why standard output took nothing.
pub(crate) fn not_written(source: io::Error) -> Failure {
    match source.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::io("write to standard output", source),
    }
}

/// Writes a value as JSON that a terminal only shows.
pub(crate) fn json_text(value: &Value) -> String {
    visible::json(&value.to_string()).into_owned()
}
