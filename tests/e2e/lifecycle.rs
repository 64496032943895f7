//! Starting, ending, and what is left behind.

use std::time::{Duration, Instant};

use tandem_tests::grpc::{collect, generate, request};
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::{default_daemon, home};

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let mut daemon = default_daemon().await;
    daemon.kill();
    assert!(
        daemon.home().socket().exists(),
        "a killed daemon leaves its socket, or this tests nothing"
    );
    daemon.restart().await;
    generate(&mut daemon.client().await, request("Hello", 2))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let home = home();
    std::fs::create_dir_all(home.socket().parent().unwrap()).unwrap();
    std::fs::write(home.socket(), "precious").unwrap();
    let mut daemon = home.spawn();
    assert!(!daemon.exit().await.success());
    assert!(
        daemon
            .log()
            .contains(daemon.home().socket().to_str().unwrap()),
        "{}",
        daemon.log()
    );
    assert_eq!(
        std::fs::read_to_string(daemon.home().socket()).unwrap(),
        "precious"
    );
}

#[tokio::test]
async fn a_second_daemon_names_the_first_and_ends() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 300))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();

    let second = daemon.tandem(&["daemon", "run"]).output().unwrap();
    assert!(!second.status.success());
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(
        message.contains(&daemon.pid().to_string()),
        "the message names the process that runs: {message}"
    );

    let answer = collect(stream).await.expect("the first one never noticed");
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 300);
    generate(&mut daemon.client().await, request("Hello", 2))
        .await
        .expect("the socket is still the first one's");
}

#[tokio::test]
async fn sigterm_lets_a_stream_finish() {
    let mut daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 100))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.terminate();
    let answer = collect(stream)
        .await
        .expect("a stream that is short enough ends as usual");
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 100);
    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
    assert!(
        !daemon.home().socket().exists(),
        "the socket goes with the daemon"
    );
}

#[tokio::test]
async fn sigterm_ends_a_long_stream_at_the_drain_limit_with_a_reason() {
    let mut daemon = home().config("[server]\ndrain_seconds = 1").start().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 8000))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.terminate();
    let began = Instant::now();

    let refused = async {
        // Until the signal has arrived, a new request may still be taken.
        tandem_tests::eventually("a refusal while draining", || {
            let mut client = client.clone();
            async move { generate(&mut client, request("Hello", 1)).await.err() }
        })
        .await
    };
    let (refused, cut) = tokio::join!(refused, collect(stream));
    let cut = cut.expect_err("8000 tokens take longer than one second");
    assert_eq!(cut.code(), Code::Unavailable, "{cut:?}");
    assert_eq!(
        cut.get_details_error_info().unwrap().reason,
        "DRAIN_EXPIRED"
    );
    // Tonic's client calls a request cancelled whose connection closes before it is sent.
    assert!(
        matches!(refused.code(), Code::Unavailable | Code::Cancelled),
        "{refused:?}"
    );

    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "the end took {:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_hangup_does_not_end_a_stream() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 200))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.signal("HUP");
    assert_eq!(
        collect(stream)
            .await
            .unwrap()
            .complete
            .usage
            .unwrap()
            .completion_tokens,
        200
    );
    generate(&mut daemon.client().await, request("Hello", 2))
        .await
        .unwrap();
}
