//! The size limit: who goes, in which order, and who never.

use std::fs::{self, File, FileTimes};
use std::time::{Duration, SystemTime};

use tandem_prepared::StoreError;

use crate::world::{World, obtain_with};

/// Says that a prepared file was last used so many minutes ago.
fn used(world: &World, isa: &str, minutes: u64) {
    let entries = world.store.list().unwrap();
    let is_meant = |entry: &&tandem_prepared::Entry| {
        let summary = entry.summary.as_ref();
        summary.is_ok_and(|summary| summary.isa == isa)
    };
    let entry = entries.iter().find(is_meant).unwrap();
    let file = File::open(&entry.path).unwrap();
    let at = SystemTime::now() - Duration::from_secs(60 * minutes);
    file.set_times(FileTimes::new().set_accessed(at)).unwrap();
}

fn sets(world: &World) -> Vec<String> {
    let entries = world.store.list().unwrap();
    let mut sets: Vec<String> = entries
        .into_iter()
        .map(|entry| entry.summary.unwrap().isa)
        .collect();
    sets.sort();
    sets
}

/// A world whose limit is so many files of the model.
fn world(files: u64) -> World {
    let trial = World::new();
    trial.obtain().assert_made(&trial.model(), "");
    let bytes = trial.store.list().unwrap()[0].bytes;
    // A few bytes more: names of instruction sets have different lengths.
    World::with_limit(files * (bytes + 20))
}

#[test]
fn those_used_least_recently_go_first() {
    let world = world(3);
    for isa in ["a", "b", "c"] {
        world.obtain_for(isa).assert_made(&world.model(), "");
    }
    assert_eq!(sets(&world), ["a", "b", "c"]);
    used(&world, "a", 10);
    used(&world, "b", 30);
    used(&world, "c", 20);
    // Being found is a use.
    world.obtain_for("b").assert_found(&world.model());
    world.obtain_for("d").assert_made(&world.model(), "");
    assert_eq!(sets(&world), ["a", "b", "d"]);
    world.obtain_for("e").assert_made(&world.model(), "");
    assert_eq!(sets(&world), ["b", "d", "e"]);
}

#[test]
fn those_in_use_stay_and_without_room_nothing_is_made() {
    let world = world(2);
    let a = world.obtain_for("a");
    world.obtain_for("b").assert_made(&world.model(), "");
    used(&world, "a", 60);
    let c = world.obtain_for("c");
    c.assert_made(&world.model(), "");
    assert_eq!(
        sets(&world),
        ["a", "c"],
        "a was used before b, and is mapped"
    );

    let error = world.obtain_for("d").result.unwrap_err();
    assert!(matches!(error, StoreError::NoRoom { .. }), "{error}");
    assert_eq!(sets(&world), ["a", "c"]);
    world.obtain_for("a").assert_found(&world.model());
    drop((a, c));
    world.obtain_for("d").assert_made(&world.model(), "");
}

#[test]
fn a_model_larger_than_the_limit_is_not_begun() {
    let world = World::with_limit(100);
    let run = obtain_with(&world.store, &world.path, "test", &|_| {});
    let error = run.result.unwrap_err().to_string();
    assert_eq!(run.packed, 0);
    assert!(
        error.contains("100 bytes") && error.contains("prepared_limit"),
        "{error}"
    );
}

#[test]
fn what_died_writers_left_goes_when_it_is_old() {
    let world = World::new();
    world.obtain().assert_made(&world.model(), "");
    let part = world.store.directory().join("x.prepared.1-0.part");
    fs::write(&part, "half").unwrap();
    world.obtain().assert_found(&world.model());
    assert!(
        part.exists(),
        "it may be somebody's who has not locked it yet"
    );
    let file = File::options().write(true).open(&part).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600))
        .unwrap();
    file.lock().unwrap();
    world.obtain().assert_found(&world.model());
    assert!(part.exists(), "it is locked: somebody writes slowly");
    drop(file);
    world.obtain().assert_found(&world.model());
    assert!(!part.exists());
}
