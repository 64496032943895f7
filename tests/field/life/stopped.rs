//! A daemon that is stopped or hangs keeps nobody waiting for long, and can be ended.

use std::process::Output;
use std::time::{Duration, Instant};

use super::{Background, said, signal};

/// The most that any command may take.
const LONG: Duration = Duration::from_secs(60);

fn stopped() -> (Background, u32) {
    let background = Background::new();
    background.run();
    let pid = background.pid();
    signal(pid, "STOP");
    (background, pid)
}

fn within(background: &Background, limit: Duration, arguments: &str) -> Output {
    let begin = Instant::now();
    let output = background.shell(&format!("\"$T\" {arguments}"), &[]);
    let took = begin.elapsed();
    assert!(took < limit, "`{arguments}` took {took:?}: {output:?}");
    output
}

#[tokio::test]
async fn every_command_gives_up_in_time_and_says_on_whom() {
    let (background, pid) = stopped();
    let commands = [
        "status",
        "reload",
        "run Hi",
        "tokenize Hi",
        "daemon start",
        "run --no-start Hi",
    ];
    let (daemon, process) = (&background, format!("process {pid}"));
    let expected = [&*process, "is stopped", "kill -CONT", "daemon restart"];
    std::thread::scope(|scope| {
        for arguments in commands {
            scope.spawn(move || {
                let output = within(daemon, LONG, arguments);
                assert_eq!(output.status.code(), Some(69), "{arguments}: {output:?}");
                let said = said(&output);
                for part in expected {
                    assert!(
                        said.contains(part),
                        "{arguments}: {part:?} is missing in {said}"
                    );
                }
            });
        }
    });
    // A time limit is one.
    let output = within(&background, Duration::from_secs(30), "run --timeout 2s Hi");
    assert!(
        !output.status.success() && said(&output).contains("2s"),
        "{output:?}"
    );
    signal(pid, "CONT");
    background.run();
}

#[tokio::test]
async fn a_stopped_daemon_can_be_ended_and_replaced() {
    let (background, pid) = stopped();
    let output = within(&background, LONG, "daemon stop");
    assert!(output.status.success(), "{output:?}");
    assert!(!super::is_alive(pid));
    background.run();
    let pid = background.pid();
    signal(pid, "STOP");
    let output = background.shell("\"$T\" daemon restart", &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(!super::is_alive(pid) && background.pid() != pid);
}

#[tokio::test]
async fn a_daemon_that_does_not_end_is_killed_and_that_is_told() {
    let background = Background(crate::home().config("[server]\ndrain_seconds = 1"));
    background.run();
    let pid = background.pid();
    // Whoever stops it again and again stands for one that hangs.
    let hang = format!("while kill -STOP {pid} 2>/dev/null; do :; done");
    let mut hang = std::process::Command::new("bash")
        .args(["-c", &hang])
        .spawn()
        .unwrap();
    let output = within(&background, LONG, "daemon stop");
    hang.kill().unwrap();
    hang.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!super::is_alive(pid));
    background.run();
}

#[tokio::test]
async fn a_time_limit_counts_from_the_start_of_the_command() {
    let background = Background::new();
    let begin = Instant::now();
    let output = background.shell("\"$T\" run --timeout 10ms Hi", &[]);
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "it does not wait for the load"
    );
    assert_ne!(output.status.code(), Some(0));
    assert!(
        said(&output).contains("10ms"),
        "the limit as it was given: {output:?}"
    );
    // The daemon that it began to start goes on, for the next one.
    let output = background.shell("\"$T\" run --timeout 10m --max-tokens 2 Hi", &[]);
    assert!(output.status.success(), "{output:?}");
}
