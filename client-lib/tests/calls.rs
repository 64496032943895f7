//! Calls over a real socket: streams, retries, deadlines.

mod common;

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use common::{Server, chunk, complete, says};
use tandem_client::{Client, Error, Event, GenerateRequest, Retry};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Status;

const SOON: Duration = Duration::from_secs(10);

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let socket = directory.path().join("s");
    (directory, socket)
}

#[tokio::test]
async fn a_stream_ends_after_its_final_message() {
    let (_directory, socket) = place();
    let _server = Server::start(&socket, |_| {
        Ok(says([chunk("Hel", &[1]), chunk("lo", &[2]), complete()]))
    })
    .await;
    let client = Client::new(&socket).unwrap();

    let mut stream = client.generate(GenerateRequest::user("hi")).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event.unwrap());
    }
    assert!(
        matches!(&events[..], [Event::Chunk(a), Event::Chunk(b), Event::Complete(_)] if a.text == "Hel" && b.text == "lo")
    );

    let whole = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!(
        (whole.text.as_str(), whole.token_ids),
        ("Hello", vec![1, 2])
    );
    assert_eq!(whole.complete.pair, "default");
}

#[tokio::test]
async fn a_stream_without_a_final_message_is_an_error() {
    let (_directory, socket) = place();
    let _server = Server::start(&socket, |call| {
        Ok(says((call.number > 0).then(|| chunk("a", &[1]))))
    })
    .await;
    let client = Client::new(&socket).unwrap();
    let empty = client.generate(GenerateRequest::user("hi")).await;
    assert!(matches!(empty, Err(Error::UnexpectedEnd)), "{empty:?}");
    let cut = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap()
        .collect()
        .await;
    assert!(matches!(cut, Err(Error::UnexpectedEnd)), "{cut:?}");
}

#[tokio::test]
async fn unavailable_is_retried_until_something_was_delivered() {
    let (_directory, socket) = place();
    let server = Server::start(&socket, |call| match call.number {
        0 => Err(Status::unavailable("loading")),
        1 => Ok(says([Err(Status::unavailable("still loading"))])),
        2 => Ok(says([chunk("a", &[1]), complete()])),
        _ => Ok(says([chunk("a", &[1]), Err(Status::unavailable("ending"))])),
    })
    .await;
    let client = Client::new(&socket).unwrap();
    let answer = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), server.calls()), ("a", 3));

    let broken = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap()
        .collect()
        .await;
    assert!(matches!(broken, Err(Error::NotReady { .. })), "{broken:?}");
    assert_eq!(server.calls(), 4, "a delivered chunk forbids another call");
}

#[tokio::test]
async fn attempts_are_limited_and_other_errors_are_final() {
    let (_directory, socket) = place();
    let server = Server::start(&socket, |call| match call.number {
        0..3 => Err(Status::unavailable("loading")),
        _ => Err(Status::resource_exhausted("full")),
    })
    .await;
    let retry = Retry {
        attempts: 3,
        first_pause: Duration::from_millis(1),
        ..Retry::default()
    };
    let client = Client::new(&socket).unwrap().with_retry(retry);
    let error = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotReady { .. }), "{error}");
    assert_eq!(server.calls(), 3);
    let error = client
        .generate(GenerateRequest::user("hi"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::QueueFull { .. }), "{error}");
    assert_eq!(server.calls(), 4);
}

#[tokio::test]
async fn a_deadline_is_sent_and_kept() {
    let (_directory, socket) = place();
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let headers = seen.clone();
    let (keep, _kept) = mpsc::channel(8);
    let _server = Server::start(&socket, move |call| {
        headers
            .lock()
            .expect("no test panics here")
            .push(call.metadata.get("grpc-timeout").is_some());
        let (sender, messages) = mpsc::channel(8);
        if call.number == 1 {
            sender.try_send(chunk("a", &[1])).expect("there is room");
        }
        keep.try_send(sender).expect("tests make few calls");
        Ok(messages)
    })
    .await;
    let client = Client::new(&socket).unwrap();
    let request = GenerateRequest::user("hi").deadline(Duration::from_millis(200));

    let waiting = timeout(SOON, client.generate(request.clone()))
        .await
        .expect("the deadline ends the wait");
    assert!(
        matches!(waiting, Err(Error::DeadlineExceeded { .. })),
        "{waiting:?}"
    );

    let mut stream = client.generate(request).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Event::Chunk(_)))));
    let late = timeout(SOON, stream.next())
        .await
        .expect("the deadline ends the stream");
    assert!(
        matches!(late, Some(Err(Error::DeadlineExceeded { .. }))),
        "{late:?}"
    );
    assert!(stream.next().await.is_none());
    assert_eq!(*seen.lock().unwrap(), [true, true]);
}

#[tokio::test]
async fn no_daemon_is_a_clear_error_and_a_later_one_is_found() {
    let (_directory, socket) = place();
    let client = Client::new(&socket).unwrap().with_retry(Retry::never());
    let error = client.status().await.unwrap_err();
    assert!(
        matches!(error, Error::DaemonUnavailable { .. }),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(
        message.contains(&socket.display().to_string()) && message.contains("tandem daemon start"),
        "{message}"
    );

    let server = Server::start(&socket, |_| Ok(says([]))).await;
    assert_eq!(client.status().await.unwrap().server_version, "9.9.9");
    drop(server);
    let _server = Server::start(&socket, |_| Ok(says([]))).await;
    let client = client.with_retry(Retry::default());
    assert_eq!(
        client.status().await.unwrap().server_version,
        "9.9.9",
        "a restarted daemon is found again"
    );
}

#[test]
fn a_client_needs_no_runtime_before_its_first_call() {
    let client = Client::new("/nowhere/s").unwrap();
    assert_eq!(client.socket(), std::path::Path::new("/nowhere/s"));
    assert!(matches!(
        Client::new(format!("/{}", "x".repeat(200))),
        Err(Error::Paths(_))
    ));
}

#[tokio::test]
async fn reloads_and_events_come_through() {
    let (_directory, socket) = place();
    let _server = Server::start(&socket, |_| Ok(says([]))).await;
    let client = Client::new(&socket).unwrap();
    assert_eq!(client.reload().await.unwrap().changed, ["default"]);
    let mut events = client.watch().await.unwrap();
    let event = events.next().await.unwrap().expect("one event");
    assert_eq!(event.pair, "default");
    assert_eq!(events.next().await.unwrap(), None);
}
