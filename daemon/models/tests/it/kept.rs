//! A hub that does not say what there is: the token is left out, the hub is given time, and what was fetched earlier serves, with
//! a word of it.

use std::fs;

use crate::hub::REPO;
use crate::world::{World, noise};

const STALE: &str = "hf_stale";

fn with_token() -> World {
    let mut world = World::new();
    world.options.token = Some(STALE.to_owned());
    world.hub.add("a.gguf", &noise(300_000));
    world
}

fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|event| *event == what).count()
}

#[test]
fn a_token_that_is_refused_is_left_out() {
    for status in [401, 403] {
        let world = with_token();
        world.hub.set(|it| it.refuses_token = Some((STALE, status)));
        let (path, told) = world.pull(REPO);
        assert_eq!(fs::read(path.unwrap()).unwrap(), noise(300_000));
        assert_eq!(count(&told, "token refused"), 1, "{told:?}");
        assert_eq!(count(&told, "kept"), 0, "{told:?}");
    }
}

#[test]
fn a_file_that_is_here_serves_whatever_the_hub_says() {
    let world = with_token();
    let path = world.pull(REPO).0.unwrap();
    for status in [400, 401, 403, 404, 429, 500, 503] {
        world.hub.set(|it| it.status = Some(status));
        let (again, told) = world.pull(REPO);
        assert_eq!(again.unwrap(), path, "{status}");
        assert_eq!(count(&told, "kept"), 1, "{status}: {told:?}");
        assert_eq!(count(&told, "retrying"), 0, "nobody waits: {status}");
    }
    world.hub.set(|it| {
        it.status = None;
        it.wants_login = true;
    });
    assert_eq!(world.pull(REPO).0.unwrap(), path, "a page for people");
    let file = world.pull(&format!("{REPO}:a.gguf"));
    assert_eq!(file.0.unwrap(), path, "a page for people");
}

#[test]
fn whoever_chose_to_be_offline_is_not_warned() {
    let mut world = with_token();
    let path = world.pull(REPO).0.unwrap();
    world.options.offline = true;
    let (again, told) = world.pull(REPO);
    assert_eq!(again.unwrap(), path);
    assert_eq!(count(&told, "kept"), 0, "{told:?}");
}

#[test]
fn a_busy_hub_is_given_the_time_that_it_asks_for() {
    let world = with_token();
    // The list, the look at the file, and its bytes.
    world.hub.set(|it| it.busy = vec![(429, 1), (503, 0)]);
    let (path, told) = world.pull(REPO);
    assert_eq!(fs::read(path.unwrap()).unwrap(), noise(300_000));
    assert_eq!(count(&told, "retrying"), 2, "{told:?}");
}

#[test]
fn nobody_waits_for_an_hour() {
    let world = with_token();
    world.hub.set(|it| it.busy = vec![(429, 3600); 9]);
    let error = world.pull(REPO).0.unwrap_err().to_string();
    assert!(error.contains("429") && error.contains("3600 s"), "{error}");
    assert_eq!(world.hub.requests("/").len(), 1);
}

#[test]
fn a_token_that_names_no_public_repository_is_told_of() {
    let world = with_token();
    world.hub.set(|it| it.status = Some(401));
    let (result, told) = world.pull(REPO);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("token sent is not enough"), "{error}");
    assert_eq!(count(&told, "token refused"), 1, "{told:?}");
}

/// A snapshot that holds files and no links, as on disks that know none.
#[test]
fn a_cache_without_links_is_read_like_one_with_them() {
    let world = with_token();
    let path = world.pull(REPO).0.unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    fs::remove_dir_all(world.repo_dir().join("blobs")).unwrap();
    assert_eq!(world.locate(REPO), Some(path.clone()));
    world.hub.set(|it| it.status = Some(503));
    assert_eq!(world.pull(REPO).0.unwrap(), path);
}
