//! The command, as people and scripts use it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tandem_tests::grpc::{generate, request, status};
use tandem_tests::{Daemon, Home};

use crate::{TANDEM, default_daemon, home};

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// Ends a process that is not our child, so that a test that fails leaves nothing running.
struct EndOnDrop(u32);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let quietly = Command::new("kill")
            .args(["-s", "KILL", &self.0.to_string()])
            .stderr(Stdio::null())
            .status();
        quietly.expect("kill can be run");
    }
}

fn run(daemon: &Daemon, arguments: &[&str]) -> Output {
    daemon
        .tandem(arguments)
        .output()
        .expect("tandem can be run")
}

#[tokio::test]
async fn run_streams_the_answer_and_ends_with_one_line_of_figures() {
    let daemon = default_daemon().await;
    let output = run(&daemon, &["run", "--max-tokens", "24", "What is 2 plus 2?"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains('4'), "{output:?}");
    let figures = text(&output.stderr)
        .lines()
        .last()
        .expect("a line of figures");
    for word in [
        "TTFT",
        "tokens/s",
        "drafted",
        "accepted",
        "mean acceptance length",
    ] {
        assert!(figures.contains(word), "{word} is missing in: {figures}");
    }
    let plain = run(
        &daemon,
        &[
            "run",
            "--no-draft",
            "--max-tokens",
            "24",
            "What is 2 plus 2?",
        ],
    );
    assert_eq!(plain.stdout, output.stdout, "drafting changes no text");
}

#[tokio::test]
async fn run_takes_its_prompt_from_standard_input_and_prints_before_the_end() {
    let daemon = default_daemon().await;
    let mut child = daemon
        .tandem(&["run", "--max-tokens", "400"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"Tell me a long story about a river.")
        .unwrap();
    let mut first = [0; 1];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    assert!(
        child.try_wait().unwrap().is_none(),
        "the first byte came while the rest was still to be made"
    );
    assert!(child.wait_with_output().unwrap().status.success());
}

#[tokio::test]
async fn json_lines_hold_the_whole_stream() {
    let daemon = default_daemon().await;
    let output = run(
        &daemon,
        &["run", "--json", "--max-tokens", "16", "What is 2 plus 2?"],
    );
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    assert!(
        lines.len() > 2 && lines.iter().all(Value::is_object),
        "{lines:?}"
    );

    let state = run(&daemon, &["status", "--json"]);
    let state: Value = serde_json::from_slice(&state.stdout).expect("the status is JSON");
    assert_eq!(state["pid"], daemon.pid());
}

#[tokio::test]
async fn a_closed_pipe_is_silent() {
    let daemon = default_daemon().await;
    let mut child = daemon
        .tandem(&["run", "--max-tokens", "1500", "Tell me a long story"])
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut start = String::new();
    stdout.by_ref().take(1).read_to_string(&mut start).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        text(&output.stderr),
        "",
        "a reader that has enough is no error"
    );
}

#[tokio::test]
async fn exit_codes_say_whose_fault_it_was() {
    let daemon = default_daemon().await;
    let request_failed = run(&daemon, &["run", "--pair", "nonesuch", "Hello"]);
    assert_eq!(request_failed.status.code(), Some(1), "{request_failed:?}");
    assert!(text(&request_failed.stderr).contains("nonesuch"));

    let usage = run(&daemon, &["run", "--nonesuch"]);
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");

    let nobody_there = Home::new(TANDEM).command().arg("status").output().unwrap();
    assert_eq!(nobody_there.status.code(), Some(69), "{nobody_there:?}");

    let bad_config = home().config("nonesuch = 1");
    let bad_config = bad_config
        .command()
        .args(["daemon", "run"])
        .output()
        .unwrap();
    assert_eq!(bad_config.status.code(), Some(78), "{bad_config:?}");
}

#[tokio::test]
async fn run_starts_a_daemon_that_outlives_it_and_stop_ends_it() {
    let home = home();
    let output = home
        .command()
        .args(["run", "--max-tokens", "4", "Hello"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut client = tandem_tests::grpc::client(&home.socket()).await;
    let _left_behind = EndOnDrop(status(&mut client).await.pid);
    generate(&mut client, request("Hello", 2))
        .await
        .expect("it serves others too");
    let stopped = home.command().args(["daemon", "stop"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(!home.socket().exists());
}

#[tokio::test]
async fn tokenize_prints_what_the_target_sees() {
    let daemon = default_daemon().await;
    let output = run(&daemon, &["tokenize", "Hello world"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.lines().count() >= 1);
}
