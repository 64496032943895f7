//! The log takes bounded room, and can be read all the same.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use tandem_tests::eventually;

use super::{Background, signal};

/// Makes the log as long as years of use do.
fn lengthen(background: &Background) {
    let log = background.0.paths().log_file();
    let file = fs::File::options().append(true).open(log).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length + (20 << 20)).unwrap();
}

#[tokio::test]
async fn a_log_is_set_aside_while_the_daemon_runs() {
    let background = Background::new();
    background.run();
    let log = background.0.paths().log_file();
    for _ in 0..2 {
        lengthen(&background);
        background.run(); // it logs each request
        eventually("a new log", async || {
            let length = fs::metadata(&log).ok()?.len();
            (length > 0 && length < 1 << 20).then_some(())
        })
        .await;
    }
    let logs = fs::read_dir(&background.0.paths().log_dir).unwrap().count();
    assert_eq!(logs, 2, "the log and the one before, and no more");
    // Standard error is the new one: what libraries write goes there too.
    let errors = fs::read_link(format!("/proc/{}/fd/2", background.pid())).unwrap();
    assert_eq!(errors, log);
}

#[tokio::test]
async fn a_log_that_is_removed_is_made_again() {
    let background = Background::new();
    background.run();
    let log = background.0.paths().log_file();
    fs::remove_file(&log).unwrap();
    background.run();
    eventually("a new log", async || log.exists().then_some(())).await;
}

#[tokio::test]
async fn who_follows_the_log_sees_what_comes_after_it_was_set_aside() {
    let background = Background::new();
    background.run();
    let mut follow = background
        .0
        .command()
        .args(["daemon", "logs", "-f", "-n", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(follow.stdout.take().unwrap()).split(b'\n');
    let (sender, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    // It follows once it has shown what there was.
    let first = seen.recv_timeout(tandem_tests::LIMIT).unwrap();
    assert!(!first.is_empty());
    lengthen(&background);
    background.run();
    signal(background.pid(), "HUP");
    let reload = loop {
        let line = seen
            .recv_timeout(tandem_tests::LIMIT)
            .expect("the new log's lines");
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("reload") || line.contains("configuration") {
            break line;
        }
    };
    assert!(!reload.contains('\0'), "of the new log");
    follow.kill().unwrap();
    follow.wait().unwrap();

    // The new log has few lines, and the one before is not forgotten.
    let shown = background.shell("\"$T\" daemon logs -n 1000 | tr -d '\\000'", &[]);
    assert!(
        String::from_utf8_lossy(&shown.stdout).contains("listening"),
        "{shown:?}"
    );
}
