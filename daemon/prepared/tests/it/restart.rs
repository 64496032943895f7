//! Without anything going wrong, and with another model in the same place.

use std::fs::{self, File};

use tandem_prepared::{Stage, StoreError};

use crate::world::{TENSORS, World, obtain_with, settle};

#[test]
fn the_first_call_makes_the_file_and_the_next_one_reads_neither_model_nor_tensors() {
    let world = World::new();
    settle(&world.path);
    let first = world.obtain();
    first.assert_made(&world.model(), "");
    assert_eq!(first.packed, TENSORS);
    assert_eq!(
        first.stages,
        [Stage::Identifying, Stage::Preparing, Stage::Checking]
    );

    let second = world.obtain();
    second.assert_found(&world.model());
    assert_eq!(second.stages, [Stage::Checking]);
    assert_eq!(world.names().len(), 1, "{:?}", world.names());
}

#[test]
fn a_copy_under_another_name_finds_the_same_file() {
    let world = World::new();
    world.obtain().assert_made(&world.model(), "");
    let copy = world.root().join("copy.gguf");
    fs::copy(&world.path, &copy).unwrap();
    obtain_with(&world.store, &copy, "test", &|_| {}).assert_found(&world.model());
}

#[test]
fn other_content_behind_the_same_size_and_time_is_noticed() {
    let world = World::new();
    settle(&world.path);
    world.obtain().assert_made(&world.model(), "");
    world.obtain().assert_found(&world.model());

    let modified = fs::metadata(&world.path).unwrap().modified().unwrap();
    fs::write(&world.path, b"b model").unwrap();
    let file = File::options().write(true).open(&world.path).unwrap();
    file.set_modified(modified).unwrap();
    let meta = fs::metadata(&world.path).unwrap();
    assert_eq!((meta.len(), meta.modified().unwrap()), (7, modified));

    let run = world.obtain();
    run.assert_made(b"b model", "");
    assert!(run.stages.contains(&Stage::Identifying));
    assert_eq!(world.files().len(), 2, "the first model's file is another");
}

#[test]
fn each_instruction_set_has_its_file() {
    let world = World::new();
    world.obtain_for("one").assert_made(&world.model(), "");
    world.obtain_for("two").assert_made(&world.model(), "");
    world.obtain_for("one").assert_found(&world.model());
    let mut sets: Vec<String> = world
        .store
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| entry.summary.unwrap().isa)
        .collect();
    sets.sort();
    assert_eq!(sets, ["one", "two"]);
}

#[test]
fn a_model_that_changes_meanwhile_is_not_prepared() {
    let world = World::new();
    let run = obtain_with(&world.store, &world.path, "test", &|index| {
        if index == 2 {
            fs::write(&world.path, b"quite another model").unwrap();
        }
    });
    assert!(
        matches!(run.result, Err(StoreError::Changed { .. })),
        "{:?}",
        run.result
    );
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn the_list_says_what_is_in_use_and_names_find_it() {
    let world = World::new();
    let run = world.obtain();
    let [entry] = world.store.list().unwrap().try_into().unwrap();
    assert!(entry.in_use);
    assert_eq!(entry.bytes, fs::metadata(&entry.path).unwrap().len());
    for name in [
        "made up",
        "Made Up",
        "model.gguf",
        "model",
        &entry.id()[..6],
    ] {
        assert!(entry.is_called(name), "{name}");
    }
    for name in ["", "made", &entry.id()[..5], "other"] {
        assert!(!entry.is_called(name), "{name}");
    }
    drop(run);
    let [entry] = world.store.list().unwrap().try_into().unwrap();
    assert!(!entry.in_use);

    world.store.remove(&entry).unwrap();
    world.store.remove(&entry).unwrap();
    assert!(world.store.list().unwrap().is_empty());
}

#[test]
fn what_is_removed_while_it_is_mapped_stays_mapped() {
    let world = World::new();
    let run = world.obtain();
    assert_eq!(world.store.clear().unwrap().len(), 1);
    assert_eq!(world.names(), [""; 0]);
    crate::world::assert_right(&run.result.unwrap().image, &world.model());
    world.obtain().assert_made(&world.model(), "");
}
