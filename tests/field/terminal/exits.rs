//! How commands end: one code for one reason, and never a success that was none.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use tandem_tests::{Home, eventually};

use super::{ended, said, shell};
use crate::{TANDEM, default_daemon, home};

fn code(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), said(&output))
}

#[tokio::test]
async fn each_reason_has_its_code() {
    let daemon = default_daemon().await;
    let long = daemon.home().path().join("long.txt");
    fs::write(&long, "word ".repeat(9000)).unwrap();
    let long = long.to_str().unwrap();
    for (line, expected, word) in [
        (&["run", "--max-tokens", "1", "hi"][..], 0, ""),
        (&["run", "--temperature", "hot", "hi"], 2, "hot"),
        (&["run", "--top-p", "0", "hi"], 2, "top_p"),
        (&["run", "-f", long], 2, "no room for an answer"),
        (&["run", "--timeout", "1ms", "hi"], 124, "within 1"),
        (&["pull", "./none.gguf"], 66, "none.gguf"),
        (&["pull", "no reference"], 2, "no model reference"),
    ] {
        let (code, said) = code(&mut daemon.tandem(line));
        assert_eq!(code, Some(expected), "{line:?}: {said}");
        assert!(said.contains(word), "{line:?}: {said}");
    }

    let nowhere = daemon.home().path().join("hf");
    let mut offline = daemon.tandem(&["pull", "acme/none"]);
    let (code, said) = code(offline.env("HF_HUB_OFFLINE", "1").env("HF_HOME", nowhere));
    assert_eq!(code, Some(66), "{said}");
}

#[tokio::test]
async fn a_wrong_configuration_is_one_whoever_notices_it() {
    let daemon = home().config("[server]\nmax_queue = 3").start().await;
    let config = daemon.home().paths().config_file;
    fs::write(&config, "[server]\nmax_queu = 3\n").unwrap();
    let (code, said) = code(&mut daemon.tandem(&["reload"]));
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("max_queu"), "{said}");
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_a_wrong_configuration() {
    let home = home();
    let target = home.path().join("m.gguf");
    fs::write(&target, "no model").unwrap();
    let daemon = home.pair("default", &target, "none").spawn();
    eventually("a daemon that answers", async || {
        daemon.health("").await.ok()
    })
    .await;
    for line in [
        &["run", "--no-start", "hi"][..],
        &["daemon", "start"],
        &["run", "hi"],
    ] {
        let (code, said) = code(&mut daemon.tandem(line));
        assert_eq!(code, Some(78), "{line:?}: {said}");
        assert!(said.contains("m.gguf"), "{line:?}: {said}");
    }
}

#[test]
fn without_a_daemon_there_is_none() {
    let home = Home::new(TANDEM);
    for line in [&["status"][..], &["reload"], &["run", "--no-start", "hi"]] {
        let (code, said) = code(home.command().args(line));
        assert_eq!(code, Some(69), "{line:?}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_could_not_be_written_was_not_done() {
    let daemon = default_daemon().await;
    for line in [
        &["run", "--max-tokens", "2", "hi"][..],
        &["run", "--json", "--max-tokens", "2", "hi"],
        &["status"],
        &["tokenize", "hi"],
        &["doctor", "--json"],
        &["completions", "bash"],
        &["cache", "list"],
        &["pull", "bundled:smollm2-draft-20m"],
        &["--version"],
        &["run", "--help"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let (code, said) = code(daemon.tandem(line).stdout(full));
        assert_eq!(code, Some(1), "{line:?}: {said}");
        assert!(said.contains("standard output"), "{line:?}: {said}");
    }
    // What only reports ends nothing.
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let (code, said) = code(
        daemon
            .tandem(&["run", "--max-tokens", "2", "hi"])
            .stderr(full),
    );
    assert_eq!(code, Some(0), "{said}");
    let closed = shell(&daemon, r#""$TANDEM" run --max-tokens 2 hi 2>&-"#)
        .spawn()
        .unwrap();
    assert!(ended(closed).await.status.success());
}

#[tokio::test]
async fn a_reader_that_has_enough_and_ctrl_c_are_told_apart() {
    let daemon = default_daemon().await;
    let script = r#"{ "$TANDEM" run --max-tokens 1500 "Tell me a long story"; echo "ended: $?" >&2; } | head -c 1"#;
    let output = ended(shell(&daemon, script).spawn().unwrap()).await;
    assert_eq!(String::from_utf8_lossy(&output.stderr), "ended: 0\n");

    let mut child = daemon
        .tandem(&["run", "--max-tokens", "4000", "Tell me a long story"])
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    let interrupted = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    assert_eq!(ended(child).await.status.code(), Some(130));
    // Closed before, it would have been a reader that has enough.
    drop(out);
}

#[tokio::test]
async fn narrow_dumb_and_colourless_terminals_are_served() {
    let daemon = default_daemon().await;
    for (name, value) in [
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("COLUMNS", "20"),
        ("LANG", "C"),
        ("LC_ALL", "C"),
    ] {
        for line in [
            &["status"][..],
            &["run", "--max-tokens", "1", "hi"],
            &["--help"],
        ] {
            let mut command = daemon.tandem(line);
            let output = command
                .env(name, value)
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{name}={value} {line:?}: {}",
                said(&output)
            );
            assert!(!output.stdout.contains(&0x1b), "{name}={value} {line:?}");
        }
    }
}
