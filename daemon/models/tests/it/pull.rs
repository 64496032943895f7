//! Pulls that succeed: afresh, resumed, redirected, renamed, at once with another.

use std::fs;
use std::thread;

use tandem_models::Event;

use crate::hub::{COMMIT, REPO, hash};
use crate::world::{World, files, noise, parse};

#[test]
fn a_fresh_pull_fills_the_cache_as_python_does() {
    let mut world = World::new();
    let bytes = noise(700_000);
    world.hub.add("sub/tiny.Q8_0.gguf", &bytes);
    world.options.token = Some("hf_secret".to_owned());
    let model = format!("{REPO}:sub/tiny.Q8_0.gguf");
    assert_eq!(world.locate(&model), None);

    let (path, told) = world.pull(&model);
    let path = path.unwrap();
    let repo = world.repo_dir();
    assert_eq!(
        path,
        repo.join(format!("snapshots/{COMMIT}/sub/tiny.Q8_0.gguf"))
    );
    let link = fs::read_link(&path).unwrap();
    assert_eq!(
        link.to_str().unwrap(),
        format!("../../../blobs/{}", hash(&bytes))
    );
    assert_eq!(fs::read_to_string(repo.join("refs/main")).unwrap(), COMMIT);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    assert_eq!(files(&repo.join("blobs")), [hash(&bytes)]);
    assert_eq!(files(&repo.join("snapshots")), ["tiny.Q8_0.gguf"]);
    assert_eq!(told[..2], ["source", "started at 0"]);
    assert_eq!(told.last().unwrap(), "finished");

    assert_eq!(world.locate(&model), Some(path.clone()));
    assert_eq!(
        world.locate(&format!("{REPO}:q8_0@{COMMIT}")),
        Some(path.clone())
    );
    assert_eq!(world.locate(REPO), Some(path));
    // The token goes to the hub and to no other host.
    let sent = |prefix: &str| {
        let requests = world.hub.requests(prefix);
        assert!(!requests.is_empty());
        requests
            .iter()
            .filter(|request| request.headers.contains_key("authorization"))
            .count()
    };
    assert_eq!(sent(&format!("/{REPO}/resolve/")), 2);
    assert_eq!(sent("/cdn/"), 0);
}

#[test]
fn a_broken_connection_is_taken_up_where_it_broke() {
    let world = World::new();
    let bytes = noise(600_000);
    world.hub.add("a.gguf", &bytes);
    world.hub.set(|it| it.cuts = vec![100_000, 250_000]);
    let (path, told) = world.pull(REPO);
    assert_eq!(fs::read(path.unwrap()).unwrap(), bytes);
    assert_eq!(told.iter().filter(|what| *what == "retrying").count(), 2);
    let ranges: Vec<_> = world
        .hub
        .requests("/cdn/")
        .iter()
        .map(|it| it.headers.get("range").cloned())
        .collect();
    let range = |start: usize| Some(format!("bytes={start}-"));
    assert_eq!(ranges, [None, range(100_000), range(350_000)]);
}

#[test]
fn an_interrupted_pull_is_resumed_by_the_next() {
    let world = World::new();
    let bytes = noise(600_000);
    world.hub.add("a.gguf", &bytes);
    world.hub.set(|it| it.cuts = vec![400_000, 0, 0, 0, 0]);
    let error = world.pull(REPO).0.unwrap_err().to_string();
    assert!(error.contains("400000 of 600000 bytes"), "{error}");
    assert_eq!(world.locate(REPO), None);

    let (path, told) = world.pull(REPO);
    assert_eq!(fs::read(path.unwrap()).unwrap(), bytes);
    assert_eq!(told[1], "started at 400000");
    assert_eq!(files(&world.repo_dir().join("blobs")), [hash(&bytes)]);
}

#[test]
fn a_wrong_part_of_an_earlier_pull_is_thrown_away() {
    let world = World::new();
    let bytes = noise(300_000);
    world.hub.add("a.gguf", &bytes);
    for len in [1000, 300_000, 500_000] {
        let blobs = world.repo_dir().join("blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(
            blobs.join(format!("{}.incomplete", hash(&bytes))),
            vec![7; len],
        )
        .unwrap();
        let (path, _) = world.pull(REPO);
        assert_eq!(
            fs::read(path.unwrap()).unwrap(),
            bytes,
            "{len} bytes were left"
        );
        fs::remove_dir_all(world.repo_dir()).unwrap();
    }
}

#[test]
fn a_server_that_ignores_ranges_does_no_harm() {
    let world = World::new();
    let bytes = noise(600_000);
    world.hub.add("a.gguf", &bytes);
    world.hub.set(|it| {
        it.cuts = vec![300_000];
        it.ignores_range = true;
    });
    assert_eq!(fs::read(world.pull(REPO).0.unwrap()).unwrap(), bytes);
}

#[test]
fn a_renamed_repository_is_followed() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(1000));
    world
        .hub
        .set(|it| it.old_name = Some("acme/old-name".to_owned()));
    let (path, _) = world.pull("acme/old-name:a.gguf");
    assert!(
        path.unwrap()
            .starts_with(world.options.hub_cache.join("models--acme--old-name"))
    );
}

#[test]
fn two_pulls_at_once_fetch_once() {
    let world = World::new();
    let bytes = noise(500_000);
    world.hub.add("a.gguf", &bytes);
    // Until one of them waits for the other.
    world.hub.set(|it| it.holds = true);
    let pull = || {
        let mut waited = false;
        let path = world.store().pull(&parse(REPO), &mut |event: Event<'_>| {
            if matches!(event, Event::Waiting { .. }) {
                waited = true;
                world.hub.set(|it| it.holds = false);
            }
        });
        (path, waited)
    };
    let results = thread::scope(|scope| {
        let pulls = [(); 2].map(|()| scope.spawn(pull));
        pulls.map(|pull| pull.join().unwrap())
    });
    assert!(
        results
            .iter()
            .all(|(path, _)| fs::read(path.as_ref().unwrap()).unwrap() == bytes)
    );
    assert_eq!(results.iter().filter(|(_, waited)| *waited).count(), 1);
    assert_eq!(world.hub.requests("/cdn/").len(), 1);
}

#[test]
fn a_commit_is_asked_for_once_and_a_branch_each_time() {
    let world = World::new();
    world.hub.add("a.gguf", &noise(1000));
    let pinned = format!("{REPO}:a.gguf@{COMMIT}");
    let first = world.pull(&pinned).0.unwrap();
    let asked = world.hub.requests("/").len();
    assert_eq!(world.pull(&pinned).0.unwrap(), first);
    assert_eq!(world.hub.requests("/").len(), asked);

    assert_eq!(world.pull(REPO).0.unwrap(), first);
    assert!(world.hub.requests("/").len() > asked);
    assert_eq!(world.hub.requests("/cdn/").len(), 1);
}
