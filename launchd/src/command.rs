//! Running a manager's command.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::ServiceError;

/// A manager's command, such as `launchctl`.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    program: PathBuf,
    manager: &'static str,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    command: String,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Tool {
    pub(crate) fn new(program: &Path, manager: &'static str) -> Self {
        Self {
            program: program.to_owned(),
            manager,
        }
    }

    /// Runs the command to its end, whatever that is.
    pub(crate) fn ask<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Ended, ServiceError> {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().into()).collect();
        let output = Command::new(&self.program)
            .args(&args)
            // We read some of what it prints.
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ServiceError::NoCommand {
                program: self.program.display().to_string(),
                manager: self.manager,
                source,
            })?;
        let name = self.program.file_name().unwrap_or(OsStr::new("?"));
        let words: Vec<_> = std::iter::once(name)
            .chain(args.iter().map(OsString::as_os_str))
            .map(OsStr::to_string_lossy)
            .collect();
        Ok(Ended {
            command: words.join(" "),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs the command, which has to succeed.
    pub(crate) fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Ended, ServiceError> {
        self.ask(args)?.expect_success()
    }
}

impl Ended {
    pub(crate) fn success(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(crate) fn expect_success(self) -> Result<Self, ServiceError> {
        if self.success() {
            return Ok(self);
        }
        let output = [self.stderr.trim(), self.stdout.trim()]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or("it printed nothing");
        Err(ServiceError::Command {
            command: self.command,
            status: self.status.to_string(),
            output: output.to_owned(),
        })
    }
}
