//! The command against a server that answers what a test tells it to: what is printed, where, and the exit codes.

#[path = "../../client-lib/tests/common/mod.rs"]
mod common;
mod world;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use common::{Call, Message, chunk, complete, says};
use serde_json::Value;
use tandem_proto::v1::generate_request::Input;
use tokio::sync::mpsc;
use tonic::Status;
use world::{World, messages, said, text};

fn hello(_: Call) -> Result<mpsc::Receiver<Message>, Status> {
    Ok(says([chunk("Hel", &[1]), chunk("lo", &[2]), complete()]))
}

#[test]
fn run_prints_the_answer_and_the_figures_apart() {
    let world = World::with(hello);
    let output = world.run(&["run", "say", "hello", "--system", "Be brief."]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output.stdout), "Hello\n");
    assert!(text(&output.stderr).contains("TTFT"), "{output:?}");
    assert_eq!(
        messages(world.request()),
        [said("system", "Be brief."), said("user", "say hello")]
    );

    let output = world.run(&["run", "hi", "--quiet"]);
    assert_eq!(
        (text(&output.stdout), text(&output.stderr)),
        ("Hello\n", "")
    );
}

#[test]
fn prompts_come_from_arguments_files_and_standard_input() {
    let world = World::with(hello);
    world.run_with_input(&["run", "Sum up:"], "one\ntwo\n");
    assert_eq!(
        messages(world.request()),
        [said("user", "Sum up:\n\none\ntwo\n")]
    );
    world.run_with_input(&["run", "--raw"], "def f():");
    assert_eq!(
        world.request().input,
        Some(Input::Text("def f():".to_owned()))
    );
    let file = world.home.path().join("prompt.txt");
    fs::write(&file, "from a file").expect("the directory is ours");
    world.run(&["run", "-f", file.to_str().expect("it is UTF-8")]);
    assert_eq!(messages(world.request()), [said("user", "from a file")]);

    let nothing = world.run(&["run"]);
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    assert!(text(&nothing.stderr).contains("no prompt"), "{nothing:?}");
}

#[test]
fn json_has_one_object_a_line() {
    let world = World::with(hello);
    let output = world.run(&["run", "--json", "--quiet", "hi"]);
    let lines: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    assert_eq!(lines.len(), 3, "{output:?}");
    assert_eq!(
        lines[0],
        serde_json::json!({ "type": "chunk", "text": "Hel", "token_ids": [1] })
    );
    assert_eq!(lines[2]["type"], "complete");
    assert_eq!(lines[2]["finish_reason"], "stop");
    assert_eq!(lines[2]["usage"]["completion_tokens"], 2);
}

/// A world whose streams a test feeds by hand: it gets the sending end of each.
fn hand_fed() -> (World, std_mpsc::Receiver<mpsc::Sender<Message>>) {
    let (senders, streams) = std_mpsc::channel();
    let world = World::with(move |_| {
        let (sender, messages) = mpsc::channel(1);
        senders.send(sender).expect("the test listens");
        Ok(messages)
    });
    (world, streams)
}

#[test]
fn an_interrupt_cancels_and_exits_with_130() {
    use rustix::process::{Pid, Signal, kill_process};
    let (world, streams) = hand_fed();
    let child = world
        .command(&["run", "hi"])
        .spawn()
        .expect("tandem can be run");
    let sender = streams
        .recv_timeout(Duration::from_secs(120))
        .expect("a request was made");
    kill_process(Pid::from_child(&child), Signal::INT).expect("it is our child");
    world.runtime.block_on(sender.closed());
    let output = child.wait_with_output().expect("tandem ends");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(130), "")
    );
}

#[test]
fn a_closed_pipe_is_silent_and_cancels() {
    let (world, streams) = hand_fed();
    let mut child = world
        .command(&["run", "hi"])
        .spawn()
        .expect("tandem can be run");
    let sender = streams
        .recv_timeout(Duration::from_secs(120))
        .expect("a request was made");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    world
        .runtime
        .block_on(sender.send(chunk("first\n", &[1])))
        .expect("the stream is open");
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line comes");
    assert_eq!(line, "first\n", "chunks are printed as they come");
    drop(stdout);
    // More chunks until the call is cancelled, which a write to the closed pipe must cause.
    while world
        .runtime
        .block_on(sender.send(chunk("more\n", &[2])))
        .is_ok()
    {}
    let output = child.wait_with_output().expect("tandem ends");
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (Some(0), ""),
        "{output:?}"
    );
}

#[test]
fn chat_keeps_its_history_until_it_is_reset() {
    let world = World::with(hello);
    let output = world.run_with_input(
        &["chat", "--quiet"],
        "one\n\ntwo\n/reset\nthree\n/exit\nfour\n",
    );
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), "Hello\nHello\nHello\n"),
        "{output:?}"
    );
    assert_eq!(messages(world.request()), [said("user", "one")]);
    assert_eq!(
        messages(world.request()),
        [
            said("user", "one"),
            said("assistant", "Hello"),
            said("user", "two")
        ]
    );
    assert_eq!(messages(world.request()), [said("user", "three")]);
    assert!(world.requests.try_recv().is_err(), "nothing follows /exit");
}

#[test]
fn tokenize_prints_ids_pieces_or_json() {
    let world = World::with(hello);
    assert_eq!(text(&world.run(&["tokenize", "ab"]).stdout), "97 98\n");
    assert_eq!(
        text(
            &world
                .run_with_input(&["tokenize", "--pieces"], "a\n")
                .stdout
        ),
        "97\t\"a\"\n10\t\"\\n\"\n"
    );
    let output = world.run(&["tokenize", "--json", "ab"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(
        json,
        serde_json::json!({ "token_ids": [97, 98], "pieces": [[97], [98]] })
    );
}

#[test]
fn status_is_a_table_or_json() {
    let world = World::with(hello);
    assert!(text(&world.run(&["status"]).stdout).starts_with("daemon       9.9.9"));
    let json: Value =
        serde_json::from_slice(&world.run(&["status", "--json"]).stdout).expect("it is JSON");
    assert_eq!(json["server_version"], "9.9.9");
}

#[test]
fn a_failed_request_exits_with_1() {
    let world = World::with(|_| Err(Status::not_found("there is no pair \"x\"")));
    let output = world.run(&["run", "--pair", "x", "hi"]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(1), ""),
        "{output:?}"
    );
    assert_eq!(
        text(&output.stderr),
        "tandem: there is no pair \"x\"; `tandem status` lists the pairs\n"
    );
    assert_eq!(world.request().pair, "x");
}

#[test]
fn without_a_daemon_the_exit_code_is_69() {
    let world = World::empty();
    for arguments in [
        &["status"][..],
        &["run", "--no-start", "hi"],
        &["tokenize", "--no-start", "hi"],
    ] {
        let output = world.run(arguments);
        assert_eq!(output.status.code(), Some(69), "{output:?}");
        assert!(
            text(&output.stderr).contains("no daemon answers"),
            "{output:?}"
        );
    }
    let stop = world.run(&["daemon", "stop"]);
    assert_eq!(
        stop.status.code(),
        Some(0),
        "there is nothing to stop: {stop:?}"
    );
    let logs = world.run(&["daemon", "logs"]);
    assert_eq!(logs.status.code(), Some(1), "{logs:?}");
}

/// Writes a program that stands for a daemon that cannot start.
fn failing_daemon(home: &Path, exit_code: u8) -> String {
    let program = home.join("tandemd");
    fs::write(
        &program,
        format!("#!/bin/sh\necho unknown key >&2\nexit {exit_code}\n"),
    )
    .expect("the directory is ours");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("the file is ours");
    program.into_os_string().into_string().expect("it is UTF-8")
}

#[test]
fn a_daemon_that_does_not_start_passes_on_that_its_configuration_is_bad() {
    for (daemon_code, code) in [(78, 78), (9, 69)] {
        let world = World::empty();
        // A configuration that cannot be read names no models to fetch, so only the daemon is started.
        fs::write(world.home.path().join("config.toml"), "nonesuch = 1\n")
            .expect("the directory is ours");
        let daemon = failing_daemon(world.home.path(), daemon_code);
        let output = world
            .command(&["run", "hi"])
            .env("TANDEM_DAEMON", daemon)
            .output()
            .expect("tandem can be run");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(
            text(&output.stderr).contains("unknown key"),
            "the log explains: {output:?}"
        );
        let logs = world.run(&["daemon", "logs"]);
        assert_eq!(text(&logs.stdout), "unknown key\n");
    }
}

#[test]
fn usage_errors_exit_with_2() {
    let world = World::empty();
    assert_eq!(world.run(&["run", "--nonesuch"]).status.code(), Some(2));
    assert_eq!(world.run(&["nonesuch"]).status.code(), Some(2));
}

#[test]
fn completions_name_the_subcommands() {
    let output = World::empty().run(&["completions", "bash"]);
    assert!(text(&output.stdout).contains("tokenize"), "{output:?}");
}
