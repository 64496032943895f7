//! A daemon that lives is found, whatever becomes of its socket.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};

use tandem_tests::grpc::{collect, request};
use tandem_tests::{Daemon, eventually, grpc};
use tokio_stream::StreamExt as _;

use crate::default_daemon;

async fn until_reachable(daemon: &Daemon) {
    let socket = daemon.home().socket();
    eventually("the socket is there again", async || {
        UnixStream::connect(&socket).ok()
    })
    .await;
}

/// The next client is served by the daemon that runs, and a second daemon is refused as ever.
async fn is_the_one(daemon: &Daemon) {
    let output = daemon
        .tandem(&["run", "--max-tokens", "2", "Hi"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut client = grpc::client(&daemon.home().socket()).await;
    assert_eq!(grpc::status(&mut client).await.pid, daemon.pid());
    assert_eq!(
        fs::metadata(daemon.home().socket()).unwrap().mode() & 0o777,
        0o600
    );
    let second = daemon.tandem(&["daemon", "run"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{second:?}");
}

#[tokio::test]
async fn a_socket_that_is_removed_is_made_again_and_streams_go_on() {
    let daemon = default_daemon().await;
    let socket = daemon.home().socket();
    let mut client = daemon.client().await;
    let stream = client
        .generate(request("Once upon a time", 200))
        .await
        .unwrap();
    let mut stream = stream.into_inner();
    stream.next().await.unwrap().unwrap();
    let run = socket.parent().unwrap().to_owned();
    let moved = daemon.home().path().join("elsewhere");
    let accidents: [&dyn Fn(); 5] = [
        &|| fs::remove_file(&socket).unwrap(),
        &|| fs::rename(&socket, run.join("other")).unwrap(),
        // A stale socket in its place.
        &|| {
            fs::remove_file(&socket).unwrap();
            drop(UnixListener::bind(&socket).unwrap());
        },
        // With the lock.
        &|| fs::remove_dir_all(&run).unwrap(),
        &|| fs::rename(&run, &moved).unwrap(),
    ];
    for accident in accidents {
        accident();
        until_reachable(&daemon).await;
        is_the_one(&daemon).await;
    }
    let answer = collect(stream).await.unwrap();
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 200);
}

#[tokio::test]
async fn the_client_that_comes_first_after_the_accident_is_served() {
    let daemon = default_daemon().await;
    let run = daemon.home().socket().parent().unwrap().to_owned();
    for _ in 0..5 {
        fs::remove_file(daemon.home().socket()).unwrap();
        let output = daemon
            .tandem(&["run", "--max-tokens", "2", "Hi"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    fs::remove_dir_all(run).unwrap();
    let output = daemon
        .tandem(&["run", "--max-tokens", "2", "Hi"])
        .output()
        .unwrap();
    // Where the client was faster, another daemon has the lock now, and the first one ends; then this one has to go too.
    let mut client = grpc::client(&daemon.home().socket()).await;
    let pid = grpc::status(&mut client).await.pid;
    if pid != daemon.pid() {
        super::until_gone(daemon.pid()).await;
        super::end(pid);
    }
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn a_daemon_in_whose_place_something_else_is_ends_and_does_not_touch_it() {
    let mut daemon = default_daemon().await;
    let socket = daemon.home().socket();
    fs::remove_file(&socket).unwrap();
    // Faster than the daemon, or it comes between, as often as that takes.
    while fs::create_dir(&socket).is_err() {
        let _gone = fs::remove_file(&socket);
    }
    assert_eq!(daemon.exit().await.code(), Some(0));
    assert!(socket.is_dir());
    assert!(daemon.log().contains("not a socket"), "{}", daemon.log());
    let output = daemon.tandem(&["run", "Hi"]).output().unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert!(super::said(&output).contains("not a socket"), "{output:?}");
}

#[tokio::test]
async fn a_daemon_whose_place_is_gone_for_good_drains_and_ends() {
    let mut daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let stream = client
        .generate(request("Once upon a time", 100))
        .await
        .unwrap();
    let run = daemon.home().socket().parent().unwrap().to_owned();
    fs::remove_dir_all(&run).unwrap();
    while fs::write(&run, "in the way").is_err() {
        let _gone = fs::remove_dir_all(&run);
    }
    let answer = collect(stream.into_inner())
        .await
        .expect("the drain lets it finish");
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 100);
    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
}
