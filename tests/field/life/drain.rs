//! While a daemon finishes its last requests, everybody knows, and waits for the next one.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tandem_proto::lock::Record;
use tandem_proto::v1::GenerateResponse;
use tandem_tests::grpc::{collect, generate, request};
use tandem_tests::{Daemon, eventually};
use tokio_stream::StreamExt as _;
use tonic::{Code, Streaming};
use tonic_types::StatusExt as _;

use super::{end, said};

/// A daemon that drains for as long as a stream takes, and that stream.
async fn draining(config: &str) -> (Daemon, Streaming<GenerateResponse>) {
    let daemon = crate::home().config(config).start().await;
    let mut client = daemon.client().await;
    let stream = client
        .generate(request("Once upon a time", 8000))
        .await
        .unwrap();
    let mut stream = stream.into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.terminate();
    let lock = daemon.home().paths().lock;
    eventually("it drains", async || {
        std::fs::read_to_string(&lock)
            .ok()?
            .contains("draining")
            .then_some(())
    })
    .await;
    (daemon, stream)
}

/// Ends the daemon that a command has started in this place, so that a test that fails leaves nothing running.
struct Next(PathBuf);

impl Drop for Next {
    fn drop(&mut self) {
        let record = std::fs::read(&self.0).map(|bytes| Record::parse(&bytes));
        if let Ok(Some(pid)) = record.map(|record| record.pid) {
            end(pid);
        }
    }
}

fn begin(mut command: Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn commands_wait_for_the_end_and_say_whose() {
    let (mut daemon, stream) = draining("[server]\ndrain_seconds = 8").await;
    let _next = Next(daemon.home().paths().lock);
    let pid = daemon.pid().to_string();
    let status = daemon.tandem(&["status"]).output().unwrap();
    assert_eq!(status.status.code(), Some(69), "{status:?}");
    assert!(
        said(&status).contains(&pid) && said(&status).contains("ending"),
        "{status:?}"
    );
    let run = begin(daemon.tandem(&["run", "--max-tokens", "2", "Hi"]));
    let start = begin(daemon.tandem(&["daemon", "start"]));
    let stop = begin(daemon.tandem(&["daemon", "stop"]));
    collect(stream)
        .await
        .expect_err("8000 tokens take longer than the drain");
    assert_eq!(daemon.exit().await.code(), Some(0));

    let stop = stop.wait_with_output().unwrap();
    assert!(stop.status.success(), "{stop:?}");
    for waiting in [run, start] {
        let output = waiting.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(
            said(&output).contains(&pid),
            "it says for whom it waits: {output:?}"
        );
    }
    let stopped = daemon.tandem(&["daemon", "stop"]).output().unwrap();
    assert!(said(&stopped).contains("has ended"), "{stopped:?}");
}

#[tokio::test]
async fn restart_waits_for_the_drain_and_starts_the_next() {
    let (mut daemon, stream) = draining("[server]\ndrain_seconds = 3").await;
    let _next = Next(daemon.home().paths().lock);
    let restart = begin(daemon.tandem(&["daemon", "restart"]));
    collect(stream)
        .await
        .expect_err("8000 tokens take longer than the drain");
    daemon.exit().await;
    let restart = restart.wait_with_output().unwrap();
    assert!(restart.status.success(), "{restart:?}");
    assert!(
        said(&restart).contains(&daemon.pid().to_string()),
        "{restart:?}"
    );
    let stopped = daemon.tandem(&["daemon", "stop"]).output().unwrap();
    assert!(said(&stopped).contains("has ended"), "{stopped:?}");
}

#[tokio::test]
async fn calls_on_an_open_channel_are_told_that_the_daemon_drains() {
    let daemon = crate::home()
        .config("[server]\ndrain_seconds = 30")
        .start()
        .await;
    let mut client = daemon.client().await;
    let stream = client
        .generate(request("Once upon a time", 400))
        .await
        .unwrap();
    let mut stream = stream.into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.terminate();
    let refused = eventually("a refusal", || {
        let mut client = client.clone();
        async move { generate(&mut client, request("Hello", 1)).await.err() }
    })
    .await;
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    let reason = refused.get_details_error_info().expect("typed").reason;
    assert_eq!(reason, "DRAINING");
    assert!(refused.get_details_retry_info().is_some());
    let answer = collect(stream).await.expect("what runs is finished");
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 400);
}
