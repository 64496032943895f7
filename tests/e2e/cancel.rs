//! A client that goes away stops the work it asked for.

use std::time::Duration;

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{GenerateRequest, RequestTotals};
use tandem_tests::grpc::{Client, generate, long_prompt, request, status, until_queued};
use tandem_tests::{Daemon, eventually};
use tokio::time::sleep;
use tokio_stream::StreamExt as _;

use crate::{default_daemon, home};

async fn totals(client: &mut Client) -> RequestTotals {
    status(client).await.totals.expect("totals are told")
}

/// Waits until one request has been cancelled, and checks that the engine then stands still.
async fn stands_still_after_cancelling(client: &mut Client) -> RequestTotals {
    eventually("a cancelled request", || {
        let mut client = client.clone();
        async move { (totals(&mut client).await.cancelled == 1).then_some(()) }
    })
    .await;
    until_queued(client, 0, 0).await;
    let before = totals(client).await;
    // Nothing is hoped for: the longer nothing happens, the more this shows.
    sleep(Duration::from_millis(500)).await;
    assert_eq!(
        totals(client).await.steps,
        before.steps,
        "the engine works for nobody"
    );
    before
}

async fn serves_the_next(daemon: &Daemon) {
    let answer = generate(&mut daemon.client().await, request("Hello", 4))
        .await
        .unwrap();
    assert_eq!(answer.token_ids.len(), 4);
}

#[tokio::test]
async fn in_decode() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 1500))
        .await
        .unwrap()
        .into_inner();
    for _ in 0..3 {
        stream.next().await.unwrap().unwrap();
    }
    let at_drop = totals(&mut client).await;
    drop(stream);
    let after = stands_still_after_cancelling(&mut client).await;
    // The reset has to travel, so a few steps may pass; the request's 1500 tokens must not.
    assert!(
        after.steps - at_drop.steps < 100,
        "{} steps after the client had gone",
        after.steps - at_drop.steps
    );
    serves_the_next(&daemon).await;
}

#[tokio::test]
async fn in_prefill() {
    // Small steps make the prefill long, whatever the machine.
    let daemon = home().config("[engine]\nmax_step_rows = 8").start().await;
    let mut client = daemon.client().await;
    let stream = client
        .generate(request(&long_prompt(1500), 64))
        .await
        .unwrap()
        .into_inner();
    eventually("a prefill under way", || {
        let mut client = client.clone();
        async move { (totals(&mut client).await.steps >= 2).then_some(()) }
    })
    .await;
    drop(stream);
    let after = stands_still_after_cancelling(&mut client).await;
    assert_eq!(
        after.completion_tokens, 0,
        "the prompt was still being read"
    );
    assert!(
        after.steps < 150,
        "{} steps of about 190 ran before the cancellation",
        after.steps
    );
    serves_the_next(&daemon).await;
}

#[tokio::test]
async fn while_waiting() {
    let daemon = home().config("[server]\nmax_concurrent = 1").start().await;
    let mut client = daemon.client().await;
    let mut running = client
        .generate(request("Once upon a time", 200))
        .await
        .unwrap()
        .into_inner();
    running.next().await.unwrap().unwrap();
    let waiting = client
        .generate(request("In the beginning", 200))
        .await
        .unwrap()
        .into_inner();
    until_queued(&mut client, 1, 1).await;
    drop(waiting);
    until_queued(&mut client, 1, 0).await;
    let rest = tandem_tests::grpc::collect(running).await.unwrap();
    assert_eq!(
        rest.complete.usage.unwrap().completion_tokens,
        200,
        "cancelling one does not touch another"
    );
}

#[tokio::test]
async fn by_a_client_that_is_killed() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut command = daemon.tandem(&["run", "--max-tokens", "1500", "Tell me a long story"]);
    let mut child = command.spawn().unwrap();
    until_queued(&mut client, 1, 0).await;
    child.kill().unwrap();
    child.wait().unwrap();
    stands_still_after_cancelling(&mut client).await;
    serves_the_next(&daemon).await;
}

#[tokio::test]
async fn by_a_connection_that_breaks_before_the_first_token() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let prompt = GenerateRequest {
        input: Some(Input::Text(long_prompt(1000))),
        ..request("", 64)
    };
    let mut other = daemon.client().await;
    let pending = tokio::spawn(async move { generate(&mut other, prompt).await.map(|_| ()) });
    until_queued(&mut client, 1, 0).await;
    pending.abort();
    stands_still_after_cancelling(&mut client).await;
}
