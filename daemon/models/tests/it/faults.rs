//! Pulls that fail: each says why, and leaves nothing behind under a final name.

use std::fs;
use std::time::{Duration, Instant};

use tandem_models::{FetchError, PullError};

use crate::hub::REPO;
use crate::world::{World, files, noise, parse};

fn only_error(result: Result<std::path::PathBuf, PullError>) -> FetchError {
    match result {
        Err(PullError::Failed { mut attempts, .. }) if attempts.len() == 1 => {
            attempts.remove(0).error
        }
        other => panic!("expected one failed source, got {other:?}"),
    }
}

#[test]
fn corrupt_data_is_refused_and_leaves_nothing() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(300_000));
    world
        .hub
        .set(|it| it.sends_instead = Some(vec![1; 300_000]));
    let error = only_error(world.pull(REPO).0);
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    assert_eq!(files(&world.repo_dir()), [""; 0]);
    assert_eq!(world.locate(REPO), None);
}

#[test]
fn a_longer_file_than_promised_is_refused() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(300_000));
    world
        .hub
        .set(|it| it.sends_instead = Some(noise(900_000)[100..].to_vec()));
    let error = only_error(world.pull(REPO).0);
    assert!(matches!(error, FetchError::Checksum { .. }), "{error}");
    assert_eq!(files(&world.repo_dir()), [""; 0]);
}

#[test]
fn a_missing_file_is_told_with_those_that_are_there() {
    let world = World::new();
    world.hub.add("a.Q8_0.gguf", &noise(10));
    let error = only_error(world.pull(&format!("{REPO}:b.gguf")).0).to_string();
    assert!(
        error.contains("`b.gguf`") && error.contains("it has a.Q8_0.gguf"),
        "{error}"
    );
}

#[test]
fn a_missing_repository_or_revision_is_told() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(10));
    for model in [
        "acme/none",
        "acme/none:a.gguf",
        &format!("{REPO}@v9"),
        &format!("{REPO}:a.gguf@v9"),
    ] {
        let error = only_error(world.pull(model).0);
        assert!(
            matches!(error, FetchError::NotFound { .. }),
            "{model}: {error}"
        );
    }
}

#[test]
fn a_refusal_says_whether_a_token_was_sent() {
    let mut world = World::new();
    for status in [401, 403] {
        world.hub.set(|it| it.status = Some(status));
        world.options.token = None;
        let error = only_error(world.pull(REPO).0).to_string();
        assert!(
            error.contains(&format!("({status})")) && error.contains("set HF_TOKEN"),
            "{error}"
        );
        world.options.token = Some("hf_x".to_owned());
        let error = only_error(world.pull(&format!("{REPO}:a.gguf")).0).to_string();
        assert!(error.contains("token sent is not enough"), "{error}");
    }
}

#[test]
fn a_file_larger_than_the_disk_is_refused_before_it_is_fetched() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(10));
    world.hub.set(|it| it.claims_size = Some(1 << 60));
    let error = only_error(world.pull(REPO).0);
    assert!(matches!(error, FetchError::DiskFull { needed_bytes, .. } if needed_bytes == 1 << 60));
    assert!(world.hub.requests("/cdn/").is_empty());
}

#[test]
fn an_etag_cannot_name_a_file_elsewhere() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(10));
    world
        .hub
        .set(|it| it.claims_etag = Some("../../evil".to_owned()));
    let error = only_error(world.pull(REPO).0);
    assert!(matches!(error, FetchError::BadAnswer { .. }), "{error}");
}

#[test]
fn what_was_fetched_serves_while_the_hub_is_away() {
    let mut world = World::new();
    world.hub.add("a.gguf", &noise(10));
    let path = world.pull(REPO).0.unwrap();
    world.hub.set(|it| it.status = Some(503));
    assert_eq!(world.pull(REPO).0.unwrap(), path);
    world.options.endpoint = "http://127.0.0.1:1".to_owned();
    assert_eq!(world.pull(REPO).0.unwrap(), path);
    world.options.offline = true;
    assert_eq!(world.pull(REPO).0.unwrap(), path);
    let error = only_error(world.pull("acme/other").0);
    assert!(matches!(error, FetchError::Offline), "{error}");
}

#[test]
fn a_hub_that_does_not_exist_fails_soon() {
    let mut world = World::new();
    world.options.endpoint = "https://hub.invalid".to_owned();
    let start = Instant::now();
    let error = only_error(world.pull(REPO).0);
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_local_path_is_found_or_missed_but_not_pulled() {
    let world = World::new();
    let folder = world.options.home.clone().unwrap();
    fs::write(folder.join("m.gguf"), b"GGUF").unwrap();
    assert_eq!(world.pull("~/m.gguf").0.unwrap(), folder.join("m.gguf"));
    assert_eq!(world.locate("~/none.gguf"), None);
    assert!(matches!(
        world.pull("~/none.gguf").0,
        Err(PullError::NoSuchPath { .. })
    ));
    assert!(
        world
            .store()
            .locate(&parse(&format!("{}/", folder.display())))
            .is_err()
    );
}
