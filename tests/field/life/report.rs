//! What only reports never ends what it reports on.

use std::fs::File;
use std::process::Stdio;

use tandem_tests::grpc::{generate, request};
use tandem_tests::{Daemon, eventually};
use tokio_stream::StreamExt as _;

use super::{Background, said};

/// Starts a daemon whose output goes where a script has it go, in place of the harness's log.
async fn daemon_to(redirection: &str) -> Daemon {
    let home = crate::home();
    let mut command = home.command_of("/bin/bash");
    command
        .arg("-c")
        .arg(format!("exec \"$T\" daemon run {redirection}"))
        .env("T", crate::TANDEM);
    let mut daemon = home.spawn_by(command);
    daemon.wait_until_serving().await;
    daemon
}

/// Has it do what it logs, and then serve.
async fn still_serves(daemon: &Daemon) {
    daemon.signal("HUP");
    let mut client = daemon.client().await;
    let mut cancelled = client
        .generate(request("Once upon a time", 500))
        .await
        .unwrap()
        .into_inner();
    cancelled.next().await.unwrap().unwrap();
    drop(cancelled);
    generate(&mut client, request("Hello", 2)).await.unwrap();
}

#[tokio::test]
async fn a_daemon_serves_whose_standard_error_takes_nothing() {
    // A full disk, a pipe whose reader is gone, one whose reader never reads, and none at all: then the next file that is
    // opened, which may be the socket, would be standard error.
    for redirection in [
        "2>/dev/full >&2",
        "2> >(exec true)",
        "2> >(exec sleep 600)",
        "2>&- >&- <&-",
    ] {
        let mut daemon = daemon_to(redirection).await;
        still_serves(&daemon).await;
        daemon.terminate();
        assert_eq!(daemon.exit().await.code(), Some(0), "{redirection}");
    }
}

#[tokio::test]
async fn a_command_does_its_work_where_standard_error_takes_nothing() {
    let background = Background::new();
    // Starting the daemon tells much on standard error, and each of them the figures at the end.
    for redirection in ["2>/dev/full", "2> >(exec true)", "2>&-"] {
        let script = format!("\"$T\" run --max-tokens 2 Hi {redirection}");
        let output = background.shell(&script, &[]);
        assert_eq!(output.status.code(), Some(0), "{redirection}: {output:?}");
        assert!(!output.stdout.is_empty(), "{redirection}");
        let script = format!("\"$T\" status {redirection} && \"$T\" daemon start {redirection}");
        let output = background.shell(&script, &[]);
        assert_eq!(output.status.code(), Some(0), "{redirection}: {output:?}");
    }
    // An error that nobody can be told keeps its exit code.
    let output = background.shell("\"$T\" run --pair nonesuch Hi 2>/dev/full", &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = background.shell(
        "\"$T\" daemon restart 2>/dev/full && \"$T\" daemon stop 2>&-",
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[tokio::test]
async fn a_daemon_starts_where_its_log_cannot_be_written() {
    let background = Background::new();
    let logs = background.0.paths().log_dir;
    File::create(&logs).unwrap();
    background.run();
    background.run();
}

#[tokio::test]
async fn why_a_daemon_did_not_start_is_told_where_its_log_cannot_be_written() {
    let background = Background(crate::home().config("nonesuch = 1"));
    File::create(background.0.paths().log_dir).unwrap();
    let output = background.0.command().args(["run", "Hi"]).output().unwrap();
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert!(said(&output).contains("nonesuch"), "{output:?}");
}

#[tokio::test]
async fn an_error_while_standard_error_is_full_ends_with_its_code() {
    let home = crate::home().config("nonesuch = 1");
    let status = home
        .command()
        .args(["daemon", "run"])
        .stderr(Stdio::from(
            File::options().write(true).open("/dev/full").unwrap(),
        ))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(78));
    eventually("nothing is left behind", async || {
        (!home.socket().exists()).then_some(())
    })
    .await;
}
