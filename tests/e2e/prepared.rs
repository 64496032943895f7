//! Weights that are prepared once, mapped by every later start, listed, and cleared.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tandem_proto::v1::{MemoryStatus, PairInfo};
use tandem_tests::grpc::{generate, only_pair, request, status};
use tandem_tests::{Daemon, Home};

use crate::home;

async fn memory(daemon: &Daemon) -> MemoryStatus {
    status(&mut daemon.client().await).await.memory.unwrap()
}

async fn info(daemon: &Daemon) -> PairInfo {
    only_pair(&mut daemon.client().await).await.info.unwrap()
}

async fn text(daemon: &Daemon) -> String {
    let mut client = daemon.client().await;
    let answer = generate(&mut client, request("Once upon a time", 24)).await;
    answer.unwrap().text
}

/// Ends the daemon and starts it anew; returns what the new one logged.
async fn restart(daemon: &mut Daemon) -> String {
    let before = daemon.log().len();
    daemon.terminate();
    daemon.exit().await;
    daemon.restart().await;
    daemon.log()[before..].to_owned()
}

/// Runs `tandem cache …` with the daemon's home, and returns its output.
fn cache(home: &Home, arguments: &[&str]) -> String {
    let output = home
        .command()
        .arg("cache")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn list(home: &Home) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&cache(home, &["list", "--json"])).unwrap();
    let entries = listed["entries"].as_array().unwrap().clone();
    let sum: u64 = entries
        .iter()
        .map(|entry| entry["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(listed["total_bytes"], sum);
    entries
}

#[tokio::test]
async fn a_restart_maps_what_the_first_start_prepared() {
    let mut daemon = home().own_cache().start().await;
    let log = daemon.log();
    assert!(
        log.contains("preparing weights") && log.contains("prepared now, mapped"),
        "{log}"
    );
    let expected = text(&daemon).await;
    let first = memory(&daemon).await;
    assert!(first.mapped_weights >= first.target_weights + first.draft_weights);

    let log = restart(&mut daemon).await;
    assert!(
        log.contains("prepared before, mapped") && !log.contains("preparing weights"),
        "{log}"
    );
    assert_eq!(text(&daemon).await, expected);
    let second = memory(&daemon).await;
    assert_eq!(second.mapped_weights, first.mapped_weights);
    let pair = info(&daemon).await;
    assert_eq!(
        pair.target.unwrap().mapped_bytes + pair.draft.unwrap().mapped_bytes,
        second.mapped_weights
    );
    assert!(
        second.footprint < second.mapped_weights,
        "{second:?}: mapped weights are not in the footprint"
    );

    let shown = daemon.tandem(&["status"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("of prepared files mapped"), "{shown}");
}

#[tokio::test]
async fn the_cache_is_listed_and_cleared_with_and_without_a_daemon() {
    let mut daemon = home().own_cache().start().await;
    let entries = list(daemon.home());
    assert_eq!(entries.len(), 2, "{entries:?}");
    for entry in &entries {
        assert_eq!(entry["in_use"], true);
        assert_eq!(entry["damage"], Value::Null);
        assert!(!entry["isa"].as_str().unwrap().is_empty());
        let age = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_millis() as u64
            - entry["last_used_unix_ms"].as_u64().unwrap();
        assert!(age < 600_000, "{age} ms");
    }
    let table = cache(daemon.home(), &["list"]);
    assert_eq!(table.lines().count(), 4, "{table}");
    let target = entries
        .iter()
        .max_by_key(|entry| entry["bytes"].as_u64())
        .unwrap();
    let name = target["model"].as_str().unwrap();
    assert!(table.contains(name) && table.contains("in use"), "{table}");

    let said = cache(daemon.home(), &["clear", name]);
    assert!(said.contains("keeps it until it ends"), "{said}");
    assert_eq!(list(daemon.home()).len(), 1);
    // What is unlinked stays mapped.
    text(&daemon).await;

    let log = restart(&mut daemon).await;
    assert!(
        log.contains("prepared now, mapped") && log.contains("prepared before, mapped"),
        "the target anew, the draft from before: {log}"
    );
    daemon.terminate();
    daemon.exit().await;
    let unknown = daemon
        .tandem(&["cache", "clear", "nonesuch"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    let neither = daemon.tandem(&["cache", "clear"]).output().unwrap();
    assert_eq!(neither.status.code(), Some(2), "{neither:?}");
    assert!(
        list(daemon.home())
            .iter()
            .all(|entry| entry["in_use"] == false)
    );
    cache(daemon.home(), &["clear", "--all"]);
    assert!(list(daemon.home()).is_empty());
    assert!(cache(daemon.home(), &["list"]).contains("no prepared weights"));
}

#[tokio::test]
async fn a_damaged_file_costs_a_warning_and_no_wrong_word() {
    let mut daemon = home().own_cache().start().await;
    let expected = text(&daemon).await;
    daemon.terminate();
    daemon.exit().await;
    for entry in list(daemon.home()) {
        let path = PathBuf::from(entry["path"].as_str().unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 3;
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    }
    let before = daemon.log().len();
    daemon.restart().await;
    assert_eq!(text(&daemon).await, expected);
    let log = daemon.log()[before..].to_owned();
    assert_eq!(log.matches("the checksum of").count(), 2, "{log}");
    let warnings = info(&daemon).await.warnings;
    let told = warnings
        .iter()
        .filter(|warning| warning.contains("made anew"));
    assert_eq!(told.count(), 2, "{warnings:?}");
}

#[tokio::test]
async fn without_a_place_or_a_wish_the_weights_are_in_memory() {
    let daemon = home().no_cache().start().await;
    let expected = text(&daemon).await;
    assert_eq!(memory(&daemon).await.mapped_weights, 0);
    let warnings = info(&daemon).await.warnings;
    let told = warnings
        .iter()
        .filter(|warning| warning.contains("cannot create"));
    assert_eq!(told.count(), 2, "{warnings:?}");

    let daemon = home()
        .own_cache()
        .config("[engine]\nprepared = false")
        .start()
        .await;
    assert_eq!(text(&daemon).await, expected);
    let reading = memory(&daemon).await;
    assert_eq!(reading.mapped_weights, 0);
    assert!(reading.footprint > reading.target_weights, "{reading:?}");
    assert!(list(daemon.home()).is_empty());
}

#[tokio::test]
async fn two_daemons_of_one_cache_prepare_once() {
    let first = home().own_cache();
    let second = home().cache_of(&first);
    let (first, second) = tokio::join!(first.start(), second.start());
    let log = first.log() + &second.log();
    assert_eq!(log.matches("preparing weights, which").count(), 2, "{log}");
    assert_eq!(text(&first).await, text(&second).await);
    assert_eq!(list(second.home()).len(), 2);
}
