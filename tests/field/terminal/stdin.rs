//! Beside a prompt on the command line, standard input is read where that was meant, and is nobody's hang or loss otherwise.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::Value;
use tandem_tests::Daemon;

use super::{ended, said, shell};
use crate::default_daemon;

/// Tokens of the prompt that a run had, which says what it was made of.
async fn prompt_tokens(daemon: &Daemon, arguments: &[&str], stdin: Stdio) -> u64 {
    let line = ["run", "--json", "--quiet", "--max-tokens", "1"];
    let mut command: Command = daemon.tandem(&[&line[..], arguments].concat());
    let output = ended(command.stdin(stdin).spawn().unwrap()).await;
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    last["usage"]["prompt_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn it_is_read_where_that_was_meant_and_never_waited_for_otherwise() {
    let daemon = default_daemon().await;
    let notes = daemon.home().path().join("notes.txt");
    fs::write(&notes, "the river is long and the boat is small").unwrap();
    let empty = daemon.home().path().join("empty.txt");
    fs::write(&empty, "").unwrap();
    let file = |path| Stdio::from(File::open(path).unwrap());
    let name = notes.to_str().unwrap();

    let alone = prompt_tokens(&daemon, &["hi"], Stdio::null()).await;
    let both = prompt_tokens(&daemon, &["hi", "-f", name], Stdio::null()).await;
    assert!(both > alone);

    // Asked for, and a file that was redirected.
    for arguments in [&["hi", "-"][..], &["hi", "-f", "-"], &["hi"]] {
        let read = prompt_tokens(&daemon, arguments, file(&notes)).await;
        assert_eq!(read, both, "{arguments:?}");
    }
    // A pipe to this command alone: `cat notes | tandem run hi`.
    let (pipe, mut end) = std::io::pipe().unwrap();
    end.write_all(&fs::read(&notes).unwrap()).unwrap();
    drop(end);
    let read = prompt_tokens(&daemon, &["hi"], Stdio::from(pipe)).await;
    assert_eq!(read, both, "a pipe");
    // An open pipe and an open socket, into which nobody ever writes: `sleep 99 | tandem run hi`.
    assert_eq!(prompt_tokens(&daemon, &["hi"], Stdio::piped()).await, alone);
    let (theirs, _open) = UnixStream::pair().unwrap();
    let socket = Stdio::from(OwnedFd::from(theirs));
    assert_eq!(prompt_tokens(&daemon, &["hi"], socket).await, alone);
    // Nothing at all.
    assert_eq!(prompt_tokens(&daemon, &["hi"], file(&empty)).await, alone);
    assert_eq!(
        prompt_tokens(&daemon, &["hi", "-"], file(&empty)).await,
        alone
    );
    let closed = shell(&daemon, r#""$TANDEM" run --max-tokens 1 hi <&-"#)
        .spawn()
        .unwrap();
    assert!(ended(closed).await.status.success());
    // A word in the middle is a word.
    let minus = prompt_tokens(&daemon, &["3", "-", "2"], Stdio::piped()).await;
    assert_eq!(
        minus,
        prompt_tokens(&daemon, &["3 - 2"], Stdio::null()).await
    );
}

#[tokio::test]
async fn the_input_of_a_loop_stays_the_loops() {
    let daemon = default_daemon().await;
    let lines = daemon.home().path().join("lines");
    fs::write(&lines, "a\nb\nc\n").unwrap();
    let turn =
        r#"do "$TANDEM" run --quiet --max-tokens 1 "$line" >/dev/null; echo "<$line>"; done"#;
    for script in [
        format!(r"printf 'a\nb\nc\n' | while read -r line; {turn}"),
        format!("while read -r line; {turn} <{}", lines.display()),
    ] {
        let output = ended(shell(&daemon, &script).spawn().unwrap()).await;
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "<a>\n<b>\n<c>\n",
            "{}",
            said(&output)
        );
    }
}

#[tokio::test]
async fn what_was_not_read_is_said() {
    let daemon = default_daemon().await;
    let run = |script: &str| shell(&daemon, script).spawn().unwrap();
    let note = "standard input was not read";
    let turns = r#"do "$TANDEM" run --max-tokens 1 "$line"; done"#;
    let left = ended(run(&format!(
        r"printf 'a\nb\n' | while read -r line; {turns}"
    )))
    .await;
    assert!(
        left.status.success() && said(&left).contains(note),
        "{}",
        said(&left)
    );
    for script in [
        r#"echo text | "$TANDEM" run --max-tokens 1 hi"#,
        r#"printf 'a\nb\n' | while read -r line; do "$TANDEM" run --quiet --max-tokens 1 "$line"; done"#,
        r#"echo text | "$TANDEM" run --max-tokens 1 hi -"#,
        r#""$TANDEM" run --max-tokens 1 hi </dev/null"#,
    ] {
        let output = ended(run(script)).await;
        assert!(
            output.status.success() && !said(&output).contains(note),
            "{}",
            said(&output)
        );
    }
}

#[tokio::test]
async fn what_is_no_prompt_is_refused_by_name() {
    let daemon = default_daemon().await;
    let directory = daemon.home().path().to_str().unwrap();
    for (script, code, word) in [
        (r#""$TANDEM" run </dev/null"#.to_owned(), 2, "no prompt"),
        (r#""$TANDEM" run """#.to_owned(), 2, "no prompt"),
        (
            r#"printf 'a\377b' | "$TANDEM" run"#.to_owned(),
            2,
            "after 1 byte",
        ),
        (
            r#""$TANDEM" run "$(printf 'a\377')""#.to_owned(),
            2,
            "UTF-8",
        ),
        (r#""$TANDEM" run </dev/zero"#.to_owned(), 2, "64 MiB"),
        (format!(r#""$TANDEM" run -f '{directory}'"#), 1, directory),
    ] {
        let output = ended(shell(&daemon, &script).spawn().unwrap()).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{script}: {}",
            said(&output)
        );
        assert!(said(&output).contains(word), "{script}: {}", said(&output));
    }
    let nul = ended(
        shell(&daemon, r#"printf 'a\0b' | "$TANDEM" run --max-tokens 1"#)
            .spawn()
            .unwrap(),
    );
    assert!(nul.await.status.success(), "NUL is a character like others");
    let dashed = ended(
        shell(&daemon, r#""$TANDEM" run --max-tokens 1 -- -5 degrees"#)
            .spawn()
            .unwrap(),
    );
    assert!(
        dashed.await.status.success(),
        "after `--` everything is a prompt"
    );
}
