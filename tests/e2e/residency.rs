//! Pairs come into memory, change and go under a real daemon, by what people type and save.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;
use tandem_proto::v1::{GenerateRequest, MemoryStage, SamplingParams};
use tandem_tests::grpc::{collect, generate, only_pair, request, status, until_cold};
use tandem_tests::{Daemon, eventually, models};
use tokio_stream::StreamExt as _;

use crate::home;

/// The target alone or with its draft, as a config.
pub(crate) fn config(draft: &str) -> String {
    let target = models::default_pair().target.display();
    let draft = match draft {
        "small" => models::default_pair().draft.display().to_string(),
        other => other.to_owned(),
    };
    format!(
        "[pairs.only]\ntarget = {:?}\ndraft = {draft:?}\n",
        target.to_string()
    )
}

/// The same; what is given up comes back soon.
pub(crate) fn impatient(draft: &str) -> String {
    format!("[memory]\nrestore_after = \"100ms\"\n{}", config(draft))
}

fn save(daemon: &Daemon, text: &str) {
    fs::write(daemon.home().paths().config_file, text).unwrap();
}

fn seeded(max_tokens: u32) -> GenerateRequest {
    let request = request("Once upon a time", max_tokens);
    GenerateRequest {
        sampling_params: Some(SamplingParams {
            temperature: Some(0.8),
            seed: Some(3),
            ..request.sampling_params.unwrap()
        }),
        ..request
    }
}

#[tokio::test]
async fn a_stream_lives_through_a_reload_by_command_and_by_signal() {
    let daemon = home().config(&config("small")).start().await;
    let mut client = daemon.client().await;
    let expected = generate(&mut client, seeded(200)).await.unwrap();
    for how in ["command", "signal"] {
        let mut stream = client.generate(seeded(200)).await.unwrap().into_inner();
        stream.next().await.unwrap().unwrap();
        let draft = if how == "command" { "none" } else { "small" };
        save(&daemon, &config(draft));
        if how == "command" {
            let output = daemon.tandem(&["reload"]).output().unwrap();
            // The file's own watch may have come first.
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{output:?}");
            assert!(
                said == "changed only\n" || said == "no pair changed\n",
                "{said}"
            );
        } else {
            daemon.signal("HUP");
        }
        eventually("the new draft", async || {
            let info = only_pair(&mut client.clone()).await.info.unwrap();
            (info.draft.is_some() == (draft == "small")).then_some(())
        })
        .await;
        collect(stream)
            .await
            .expect("it ends on what it began with");
        let after = generate(&mut client, seeded(200)).await.unwrap();
        assert_eq!(after.text, expected.text, "{how}");
    }
}

#[tokio::test]
async fn a_reload_that_cannot_be_says_why_and_exits_with_78() {
    let daemon = home().config(&config("none")).start().await;
    save(&daemon, "[pairs.only]\ntraget = \"x\"\n");
    let output = daemon.tandem(&["reload"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    for part in [
        "stays as it was",
        "config.toml:2",
        "did you mean \"target\"",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let status = daemon.tandem(&["status"]).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    let line = status.lines().find(|line| line.starts_with("reload"));
    assert!(
        line.is_some_and(|line| line.contains("config.toml:2")),
        "{status}"
    );
    generate(&mut daemon.client().await, request("Hello", 2))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_idle_pair_goes_and_comes_back_fast_with_the_same_text() {
    let daemon = home().config(&config("small")).start().await;
    let mut client = daemon.client().await;
    let first = generate(&mut client, seeded(40)).await.unwrap();
    let output = daemon
        .tandem(&["run", "--keep-alive", "never", "--max-tokens", "2", "Hello"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    until_cold(&client).await;
    let again = generate(&mut client, seeded(40)).await.unwrap();
    assert_eq!(again.text, first.text);
    assert!(again.complete.timings.unwrap().load.is_some());
    let info = only_pair(&mut client).await.info.unwrap();
    assert_eq!(info.keep_alive.unwrap().seconds, -1, "as configured");
}

#[tokio::test]
async fn status_watch_tells_what_happens_until_the_daemon_ends() {
    let mut daemon = home().config(&config("none")).start().await;
    let mut watch = daemon
        .tandem(&["status", "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || -> Option<Value> {
        let line = lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap())
    };
    let status = next().expect("the status comes first");
    assert_eq!(status["memory_stage"], "free", "{status}");
    save(&daemon, &config("small"));
    loop {
        let event = next().expect("the daemon goes on");
        if event["event"] == "reloaded" {
            assert_eq!(event["details"]["changed"][0], "only", "{event}");
            break;
        }
    }
    daemon.terminate();
    while next().is_some() {}
    assert!(watch.wait().unwrap().success());
    daemon.exit().await;
}

#[tokio::test]
async fn after_a_kill_in_mid_stream_and_mid_reload_it_starts_again() {
    let mut daemon = home().config(&config("small")).start().await;
    let mut client = daemon.client().await;
    let expected = generate(&mut client, seeded(40)).await.unwrap();
    let mut stream = client.generate(seeded(2000)).await.unwrap().into_inner();
    stream.next().await.unwrap().unwrap();
    save(&daemon, &config("none"));
    daemon.kill();
    collect(stream).await.expect_err("nobody is there any more");
    daemon.restart().await;
    let again = generate(&mut daemon.client().await, seeded(40))
        .await
        .unwrap();
    assert_eq!(again.text, expected.text, "nothing stale is in the way");
}

#[tokio::test]
async fn under_pressure_a_stream_goes_on_plainly_and_others_are_refused_until_it_is_over() {
    let daemon = home().config(&impatient("small")).start().await;
    let mut client = daemon.client().await;
    let expected = generate(&mut client, seeded(1500)).await.unwrap();
    let observer = client.clone();
    let stage = async |wanted: MemoryStage| {
        eventually(wanted.as_str_name(), async || {
            let status = status(&mut observer.clone()).await;
            (status.memory_stage() == wanted).then_some(())
        })
        .await;
    };

    let mut stream = client.generate(seeded(1500)).await.unwrap().into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.home().stall(40, 20);
    let collected = tokio::spawn(collect(stream));
    stage(MemoryStage::Unloaded).await;
    let refused = generate(&mut client.clone(), request("Hello", 2)).await;
    let refused = refused.expect_err("no new work while memory is short");
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("short of memory"), "{refused}");
    let answer = collected.await.unwrap().expect("the stream lives");
    assert!(
        expected.text.ends_with(&answer.text) && answer.text.len() > expected.text.len() / 2,
        "with the draft gone under it, and the first chunk read before: {}",
        answer.text
    );
    until_cold(&client).await;

    daemon.home().stall(0, 0);
    stage(MemoryStage::Free).await;
    let after = generate(&mut client, seeded(1500)).await.unwrap();
    assert_eq!(after.text, expected.text);
    let info = only_pair(&mut client).await.info.unwrap();
    assert!(info.draft.is_some(), "the draft is back with the pair");
}
