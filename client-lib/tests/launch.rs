//! Starting a daemon: a shell stands for the program, and the server of the tests for what it brings up.

mod common;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{Server, says};
use tandem_client::launch::{LaunchError, Launcher, Outcome, Progress};
use tandem_client::{Client, Error, Paths, v1};
use tandem_proto::SERVICE_NAME;
use tempfile::TempDir;
use tonic_health::ServingStatus;

fn home() -> (TempDir, Paths) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let paths = Paths::under(directory.path());
    (directory, paths)
}

fn shell(script: &str, paths: &Paths) -> Launcher {
    Launcher::new("/bin/sh", ["-c", script].map(OsString::from), paths.clone())
        .time_limit(Duration::from_secs(20))
}

async fn launch(launcher: &Launcher, paths: &Paths) -> (Result<Outcome, Error>, Vec<Progress>) {
    let client = Client::new(&paths.socket).expect("the path is short");
    let mut seen = Vec::new();
    let outcome = launcher
        .ensure_running(&client, &mut |progress| seen.push(progress))
        .await;
    (outcome, seen)
}

#[tokio::test]
async fn an_early_exit_shows_its_code_and_the_end_of_its_log() {
    let (_directory, paths) = home();
    std::fs::create_dir_all(&paths.log_dir).unwrap();
    std::fs::write(paths.log_file(), "yesterday's trouble\n").unwrap();
    let launcher = shell("echo on output; echo unknown key >&2; exit 78", &paths);
    let error = launch(&launcher, &paths).await.0.unwrap_err();
    let Error::Launch(LaunchError::Exited {
        status, log_tail, ..
    }) = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(status.code(), Some(78));
    assert_eq!(
        log_tail, "on output\nunknown key",
        "only what this one wrote"
    );
    let message = error.to_string();
    assert!(
        message.contains("unknown key") && message.contains("tandemd.log"),
        "{message}"
    );
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let (_directory, paths) = home();
    let launcher = Launcher::new("/nowhere/tandemd", [], paths.clone());
    let error = launch(&launcher, &paths).await.0.unwrap_err();
    assert!(
        matches!(error, Error::Launch(LaunchError::Spawn { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("/nowhere/tandemd"), "{error}");
}

#[tokio::test]
async fn the_wait_is_limited() {
    let (directory, paths) = home();
    let over = directory.path().join("over");
    // It speaks at once, and goes on until the test is over.
    let launcher = shell(
        &format!(
            "echo busy; while test -d '{}' && ! test -e '{}'; do sleep 0.05; done",
            directory.path().display(),
            over.display()
        ),
        &paths,
    )
    .time_limit(Duration::from_secs(2));
    let (outcome, seen) = launch(&launcher, &paths).await;
    std::fs::write(over, "").unwrap();
    let error = outcome.unwrap_err();
    assert!(
        matches!(&error, Error::Launch(LaunchError::TimedOut { log_tail, .. }) if log_tail == "busy"),
        "{error:?}"
    );
    assert!(
        matches!(seen[..], [Progress::Starting { .. }, ..]),
        "{seen:?}"
    );
}

#[tokio::test]
async fn a_daemon_that_serves_is_left_alone() {
    let (directory, paths) = home();
    let _server = Server::start(&paths.socket, |_| Ok(says([]))).await;
    let launcher = shell(
        &format!("touch '{}/started'", directory.path().display()),
        &paths,
    );
    assert_eq!(
        launch(&launcher, &paths).await.0.unwrap(),
        Outcome::AlreadyServing
    );
    assert!(!directory.path().join("started").exists());
}

/// Waits until something holds.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < end, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the launched program made its mark.
async fn exists(file: &Path) {
    until("the program's mark", || file.exists()).await;
}

#[tokio::test]
async fn progress_goes_from_starting_over_loading_to_serving() {
    let (directory, paths) = home();
    let over = directory.path().join("over");
    // It goes on until the test has seen what it wants.
    let launcher = shell(
        &format!(
            "test \"$TANDEM_SOCKET\" = '{}' && while test -d '{}' && ! test -e '{}'; do sleep 0.05; done",
            paths.socket.display(),
            directory.path().display(),
            over.display()
        ),
        &paths,
    )
    .time_limit(Duration::from_secs(240));
    let seen = RefCell::new(Vec::new());
    let has = |wanted: fn(&Progress) -> bool| seen.borrow().iter().any(wanted);
    let client = Client::new(&paths.socket).expect("the path is short");
    let launching = async {
        let mut note = |progress| seen.borrow_mut().push(progress);
        launcher.ensure_running(&client, &mut note).await
    };
    let bring_up = async {
        let starting = || has(|progress| matches!(progress, Progress::Starting { .. }));
        until("that it says that it starts", starting).await;
        let server = Server::start(&paths.socket, |_| Ok(says([]))).await;
        server
            .health
            .set_service_status(SERVICE_NAME, ServingStatus::NotServing)
            .await;
        let loading = || has(|progress| matches!(progress, Progress::Loading { .. }));
        until("that it says that it loads", loading).await;
        server
            .health
            .set_service_status(SERVICE_NAME, ServingStatus::Serving)
            .await;
        server
    };
    let (outcome, _server) = tokio::join!(launching, bring_up);
    std::fs::write(over, "").unwrap();
    assert!(
        matches!(outcome, Ok(Outcome::Serving { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn losing_against_another_daemon_that_just_starts_is_no_error() {
    let (directory, paths) = home();
    let mark = directory.path().join("started");
    let launcher = shell(&format!("touch '{}'; exit 1", mark.display()), &paths);
    let other = async {
        exists(&mark).await;
        Server::start(&paths.socket, |_| Ok(says([]))).await
    };
    let ((outcome, _), _server) = tokio::join!(launch(&launcher, &paths), other);
    assert!(
        matches!(outcome, Ok(Outcome::Serving { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_default_pair_that_does_not_load_ends_the_wait() {
    let (_directory, paths) = home();
    let pair = v1::PairInfo {
        name: "main".to_owned(),
        is_default: true,
        residency: v1::Residency::Cold.into(),
        error: "the file is truncated".to_owned(),
        ..Default::default()
    };
    let server = Server::start_with_pairs(&paths.socket, vec![pair], |_| Ok(says([]))).await;
    server
        .health
        .set_service_status(SERVICE_NAME, ServingStatus::NotServing)
        .await;
    let expected = Outcome::NotLoaded {
        pair: "main".to_owned(),
        error: "the file is truncated".to_owned(),
    };
    assert_eq!(
        launch(&shell("exit 9", &paths), &paths).await.0.unwrap(),
        expected
    );
}
