//! Standard output: the only place that writes to it.

use std::io::{self, Write};

use serde_json::Value;

use crate::failure::Failure;

/// Standard output, flushed with every write: the reader sees each chunk as it comes.
#[derive(Debug)]
pub(crate) struct Output(io::Stdout);

impl Output {
    pub(crate) fn new() -> Self {
        Self(io::stdout())
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.text(&format!("{line}\n"))
    }

    pub(crate) fn json(&mut self, value: &Value) -> Result<(), Failure> {
        self.line(&value.to_string())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = self.0.lock();
        out.write_all(bytes)
            .and_then(|()| out.flush())
            .map_err(|source| match source.kind() {
                io::ErrorKind::BrokenPipe => Failure::OutputClosed,
                _ => Failure::io("write to standard output", source),
            })
    }
}
