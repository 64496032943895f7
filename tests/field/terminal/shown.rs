//! What comes from files, models or the network is shown, and not obeyed.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tandem_proto::v1::TokenizeRequest;
use tandem_tests::{Daemon, gguf, models};

use super::{ended, said};
use crate::{default_daemon, home};

/// Sequences that rename the window, clear the screen, link elsewhere, or turn words around.
const HOSTILE: &str = "\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}\nforged row";

fn is_harmless(output: &[u8]) -> bool {
    let text = String::from_utf8_lossy(output);
    let hostile = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
    !text.chars().any(hostile)
}

/// A name of the same length in bytes as that in the default target, so that the file keeps its layout.
fn hostile_name(name: &str) -> String {
    let rest = name
        .len()
        .checked_sub(HOSTILE.len())
        .expect("the default target's name is longer");
    format!("{HOSTILE}{}", "x".repeat(rest))
}

#[tokio::test]
async fn names_in_files_and_configurations_are_shown() {
    let files = models::default_pair();
    let name = "Smollm2 135M 8k Lc100K Mix1 Ep2";
    let hostile = hostile_name(name);
    let home = home();
    let copy = gguf::respelled(&files.target, name, &hostile, home.path().join("m.gguf"));
    let quoted = "\\u001b]0;pwn\\u0007\\u202e";
    let config = format!("[pairs.\"a{quoted}\"]\ntarget = {copy:?}\ndraft = \"none\"\n");
    let daemon = home
        .config(&format!("default_pair = \"a{quoted}\"\n{config}"))
        .start()
        .await;

    for arguments in [
        &["status"][..],
        &["doctor"],
        &["reload"],
        &["run", "--max-tokens", "1", "hi"],
        &["run", "--pair", "\u{1b}]0;pwn\u{7}", "hi"],
        &["cache", "list"],
        &["daemon", "logs"],
        &["pull", "acme/\u{1b}[2J"],
        &["run", "--\u{1b}[2J"],
    ] {
        let output = daemon.tandem(arguments).output().unwrap();
        assert!(is_harmless(&output.stdout), "{arguments:?}: {output:?}");
        assert!(is_harmless(&output.stderr), "{arguments:?}: {output:?}");
    }
    let status = daemon.tandem(&["status"]).output().unwrap();
    let status = said(&status);
    assert!(status.contains("\\x1b]0;pwn\\x07"), "{status}");
    assert!(
        !status.lines().any(|line| line.starts_with("forged")),
        "{status}"
    );

    let json = daemon.tandem(&["status", "--json"]).output().unwrap();
    assert!(is_harmless(&json.stdout), "{json:?}");
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        json["pairs"][0]["target"]["name"],
        hostile.as_str(),
        "JSON keeps the value"
    );
}

/// Runs `tandem` on a terminal of its own, and returns what the terminal got.
async fn on_a_terminal(daemon: &Daemon, line: &str) -> Vec<u8> {
    let mut script: Command = daemon.home().command_of("script");
    let tandem = crate::TANDEM;
    if cfg!(target_os = "macos") {
        script
            .args(["-q", "/dev/null", "sh", "-c"])
            .arg(format!("{tandem} {line}"));
    } else {
        script.args(["-qec", &format!("{tandem} {line}"), "/dev/null"]);
    }
    script.stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(script.spawn().expect("script(1) can be run"))
        .await
        .stdout
}

#[tokio::test]
async fn an_answer_is_shown_on_a_terminal_and_untouched_elsewhere() {
    let daemon = default_daemon().await;
    let escape = TokenizeRequest {
        text: "\u{1b}".to_owned(),
        ..TokenizeRequest::default()
    };
    let tokens = daemon
        .client()
        .await
        .tokenize(escape)
        .await
        .unwrap()
        .into_inner();
    let [token] = tokens.token_ids[..] else {
        panic!("a byte is a token: {tokens:?}")
    };
    // The target says nothing but ESC.
    let line = format!("run --quiet --max-tokens 4 --logit-bias {token}=100 hi");
    let words: Vec<&str> = line.split(' ').collect();
    let piped = daemon.tandem(&words).output().unwrap();
    assert!(
        piped.stdout.starts_with(b"\x1b\x1b"),
        "an answer is what the target said: {piped:?}"
    );

    let shown = on_a_terminal(&daemon, &line).await;
    assert!(
        !shown.contains(&0x1b),
        "{}",
        String::from_utf8_lossy(&shown)
    );
    assert!(
        String::from_utf8_lossy(&shown).contains("\\x1b\\x1b"),
        "{shown:?}"
    );

    let json = on_a_terminal(&daemon, &line.replace("--quiet", "--quiet --json")).await;
    assert!(!json.contains(&0x1b));
    let first = String::from_utf8_lossy(&json)
        .lines()
        .next()
        .unwrap()
        .to_owned();
    let chunk: Value = serde_json::from_str(first.trim()).unwrap();
    assert!(chunk["text"].as_str().unwrap().contains('\u{1b}'));
}

#[tokio::test]
async fn a_log_is_shown_whatever_is_in_it() {
    let home = home();
    let paths = home.paths();
    fs::create_dir_all(&paths.log_dir).unwrap();
    fs::write(paths.log_file(), b"a\x1b]0;x\x07b\xff\xc3\xa4\n").unwrap();
    let output = home.command().args(["daemon", "logs"]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "a\\x1b]0;x\\x07b\\xffä\n"
    );
}
