//! Every way in which editors save a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tandem_proto::v1::watch_response::Event;

use crate::world::{COMMON, Events, World, generate, pair, rename_over, seeded, usual};

fn config(target: &str) -> String {
    format!("{COMMON}{}", pair("main", target, "none"))
}

async fn until_reloaded(events: &mut Events) {
    let changes = events
        .find(|_, event| match event {
            Event::Reloaded(changes) => Some(changes),
            _ => None,
        })
        .await;
    assert_eq!(changes.changed, ["main"]);
}

/// Saves in this way twice, and expects that the daemon follows each time.
async fn saves(prepare: impl Fn(&Path), save: impl Fn(&str, &Path)) {
    let world = World::start(&usual()).await;
    let mut events = world.events().await;
    let path = world.path("config.toml");
    let before = fs::read(&path).unwrap();
    prepare(&path);
    // What is behind a link is watched once the daemon has looked, and it looks before it reads another text.
    if fs::read(&path).unwrap() != before {
        until_reloaded(&mut events).await;
    }
    for target in ["b", "a", "b"] {
        save(&config(target), &path);
        until_reloaded(&mut events).await;
        let info = world.info("main").await;
        let source = info.target.unwrap().source;
        assert!(source.ends_with(&format!("{target}.gguf")), "{source}");
    }
    generate(&mut world.client().await, seeded("main", 1, 5))
        .await
        .unwrap();
}

#[tokio::test]
async fn renamed_over() {
    saves(|_| {}, rename_over).await;
}

#[tokio::test]
async fn written_in_place() {
    saves(|_| {}, |text, path| fs::write(path, text).unwrap()).await;
}

#[tokio::test]
async fn deleted_and_created() {
    let save = |text: &str, path: &Path| {
        fs::remove_file(path).unwrap();
        fs::write(path, text).unwrap();
    };
    saves(|_| {}, save).await;
}

#[tokio::test]
async fn moved_to_a_backup_and_created() {
    let save = |text: &str, path: &Path| {
        fs::rename(path, path.with_extension("toml~")).unwrap();
        fs::write(path, text).unwrap();
    };
    saves(|_| {}, save).await;
}

#[tokio::test]
async fn a_link_that_points_elsewhere() {
    let save = |text: &str, path: &Path| {
        let directory = path.parent().unwrap();
        let target = directory.join(format!(
            "version-{}",
            text.len() + fs::read_dir(directory).unwrap().count()
        ));
        fs::write(&target, text).unwrap();
        let link = path.with_extension("link");
        symlink(&target, &link).unwrap();
        fs::rename(link, path).unwrap();
    };
    saves(|_| {}, save).await;
}

/// The link stays, and the file that it points to, in another directory, is replaced.
#[tokio::test]
async fn the_file_behind_a_link() {
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("real.toml");
    let prepare = |path: &Path| {
        fs::write(&real, config("a")).unwrap();
        let link = path.with_extension("link");
        symlink(&real, &link).unwrap();
        fs::rename(link, path).unwrap();
    };
    saves(prepare, |text, _| rename_over(text, &real)).await;
}

#[tokio::test]
async fn a_file_that_is_gone_or_empty_changes_nothing() {
    let world = World::start(&usual()).await;
    let mut events = world.events().await;
    let path = world.path("config.toml");
    for (spoil, part) in [
        (
            &|path: &Path| fs::remove_file(path).unwrap() as _,
            "config.toml",
        ),
        (&|path: &Path| fs::write(path, "").unwrap() as _, "is empty"),
    ] as [(&dyn Fn(&Path), &str); 2]
    {
        spoil(&path);
        events
            .find(|_, event| match event {
                Event::ReloadFailed(failed) => failed.error.contains(part).then_some(()),
                _ => None,
            })
            .await;
        let answer = generate(&mut world.client().await, seeded("main", 1, 5)).await;
        assert!(answer.unwrap().complete.timings.unwrap().load.is_none());
    }
    rename_over(&config("b"), &path);
    until_reloaded(&mut events).await;
}
