//! The command line at a terminal and in scripts: what it reads, what it shows, how it ends, and whose daemon it talks to.

mod doors;
mod exits;
mod shown;
mod stdin;

use std::process::{Child, Command, Output, Stdio};

use tandem_tests::{Daemon, eventually};

/// A shell that runs `script`, in which `$TANDEM` is the command under test.
fn shell(daemon: &Daemon, script: &str) -> Command {
    let mut command = daemon.home().command_of("sh");
    command
        .args(["-c", script])
        .env("TANDEM", crate::TANDEM)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command printed and how it ended, which it has to do by itself, whatever happens to its input.
async fn ended(mut child: Child) -> Output {
    let input = child.stdin.take();
    eventually("the end of the command", async || {
        child.try_wait().expect("a child can be waited for")
    })
    .await;
    drop(input);
    child.wait_with_output().expect("its output can be read")
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
