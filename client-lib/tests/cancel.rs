//! Cancellation over a real socket, and the blocking client, which has to drive its own.

mod common;

use std::path::PathBuf;
use std::time::Duration;

use common::{Server, chunk, complete, says};
use tandem_client::{Client, Event, GenerateRequest, blocking};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(10);

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let socket = directory.path().join("s");
    (directory, socket)
}

/// Serves streams that a test feeds by hand: it gets the sending end of each.
async fn hand_fed(
    socket: &PathBuf,
    first: usize,
) -> (Server, mpsc::Receiver<mpsc::Sender<common::Message>>) {
    let (senders, receiver) = mpsc::channel(8);
    let server = Server::start(socket, move |_| {
        let (sender, messages) = mpsc::channel(8);
        for _ in 0..first {
            sender.try_send(chunk("x", &[7])).expect("there is room");
        }
        senders.try_send(sender).expect("tests make few calls");
        Ok(messages)
    })
    .await;
    (server, receiver)
}

#[tokio::test]
async fn dropping_a_stream_cancels_the_call() {
    let (_directory, socket) = place();
    let (_server, mut senders) = hand_fed(&socket, 1).await;
    let client = Client::new(&socket).unwrap();
    let mut stream = client.generate(GenerateRequest::user("hi")).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Event::Chunk(_)))));
    let sender = senders.recv().await.unwrap();
    assert!(!sender.is_closed());
    drop(stream);
    timeout(SOON, sender.closed())
        .await
        .expect("the server notices");
}

#[tokio::test]
async fn dropping_a_call_that_waits_for_its_first_message_cancels_it() {
    let (_directory, socket) = place();
    let (_server, mut senders) = hand_fed(&socket, 0).await;
    let client = Client::new(&socket).unwrap();
    let sender = tokio::select! {
        sender = senders.recv() => sender.unwrap(),
        answer = client.generate(GenerateRequest::user("hi")) => panic!("nothing was said, but: {answer:?}"),
    };
    timeout(SOON, sender.closed())
        .await
        .expect("the server notices");
}

#[tokio::test]
async fn dropping_a_blocking_stream_cancels_the_call() {
    let (_directory, socket) = place();
    let (_server, mut senders) = hand_fed(&socket, 1).await;
    // The client must live on: the end of its connection would cancel anything.
    let client = tokio::task::spawn_blocking(move || {
        let client = blocking::Client::new(&socket).unwrap();
        let mut stream = client.generate(GenerateRequest::user("hi")).unwrap();
        assert!(matches!(stream.next(), Some(Ok(Event::Chunk(_)))));
        drop(stream);
        client
    })
    .await
    .unwrap();
    let sender = senders.recv().await.unwrap();
    timeout(SOON, sender.closed())
        .await
        .expect("the server notices");
    tokio::task::spawn_blocking(move || drop(client))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_blocking_client_reads_to_the_end() {
    let (_directory, socket) = place();
    let _server = Server::start(&socket, |_| Ok(says([chunk("ok", &[1]), complete()]))).await;
    let texts = tokio::task::spawn_blocking(move || {
        let client = blocking::Client::new(&socket).unwrap();
        let other = client.clone();
        let first = client
            .generate(GenerateRequest::user("a"))
            .unwrap()
            .wait()
            .unwrap()
            .text;
        (
            first,
            other.generate(GenerateRequest::user("b")).unwrap().count(),
        )
    });
    assert_eq!(texts.await.unwrap(), ("ok".to_owned(), 2));
}
