//! The one daemon of a user: how it starts, stays reachable, drains and ends.

mod drain;
mod inherited;
mod log;
mod one;
mod report;
mod socket;
mod stopped;

use std::process::{Command, Output, Stdio};

use tandem_proto::lock::Record;
use tandem_tests::{Home, eventually};

/// A home whose daemon is started by commands, and ended with it, so that a test that fails leaves nothing running.
struct Background(Home);

impl Background {
    fn new() -> Self {
        Self(crate::home())
    }

    /// Runs a script of the shell that finds `tandem` as `$T`, with what is in `environment` besides.
    fn shell(&self, script: &str, environment: &[(&str, &str)]) -> Output {
        self.script(script, environment).output().unwrap()
    }

    fn script(&self, script: &str, environment: &[(&str, &str)]) -> Command {
        let mut command = self.0.command_of("/bin/bash");
        command.args(["-c", script]).env("T", crate::TANDEM);
        command.envs(environment.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Asks for two tokens, which starts a daemon where none runs.
    fn run(&self) -> Output {
        let output = self
            .0
            .command()
            .args(["run", "--max-tokens", "2", "Hi"])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    }

    fn record(&self) -> Option<Record> {
        Some(Record::parse(&std::fs::read(self.0.paths().lock).ok()?))
    }

    /// The process that the lock file names.
    fn pid(&self) -> u32 {
        self.record()
            .and_then(|record| record.pid)
            .expect("a daemon runs")
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(pid) = self.record().and_then(|record| record.pid) {
            end(pid);
        }
    }
}

/// Kills a process of `tandem`'s, if it is one: its number may be somebody else's by now.
fn end(pid: u32) {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if command.starts_with(crate::TANDEM.as_bytes()) {
        signal(pid, "KILL");
    }
}

fn signal(pid: u32, name: &str) {
    let quietly = Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .stderr(Stdio::null())
        .status();
    quietly.unwrap();
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

async fn until_gone(pid: u32) {
    eventually("the end of the process", async || {
        (!is_alive(pid)).then_some(())
    })
    .await;
}

/// Everything that a command wrote.
fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
