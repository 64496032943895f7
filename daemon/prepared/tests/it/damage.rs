//! Files that are not what they should be: they are made anew, and the caller hears why.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use crate::world::World;

fn one_file(world: &World) -> PathBuf {
    let [file] = world.files().try_into().unwrap();
    file
}

/// Replaces the file; a mapping of the old one must not see it.
fn replace(path: &PathBuf, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_file_that_was_cut_anywhere_or_grew() {
    let world = World::new();
    world.obtain().assert_made(&world.model(), "");
    let file = one_file(&world);
    let good = fs::read(&file).unwrap();
    for len in [0, 1, 63, 64, 65, 200, good.len() / 2, good.len() - 1] {
        replace(&file, &good[..len]);
        let because = if len < 64 {
            "no file of prepared"
        } else {
            "should have"
        };
        world.obtain().assert_made(&world.model(), because);
    }
    let mut longer = good.clone();
    longer.push(0);
    replace(&file, &longer);
    world.obtain().assert_made(&world.model(), "should have");
    replace(&file, &vec![0; good.len()]);
    world
        .obtain()
        .assert_made(&world.model(), "no file of prepared");
    let others = "#!/bin/sh\n".repeat(50);
    replace(&file, others.as_bytes());
    world
        .obtain()
        .assert_made(&world.model(), "no file of prepared");
    world.obtain().assert_found(&world.model());
}

#[test]
fn sound_files_of_something_else() {
    let world = World::new();
    world.obtain().assert_made(&world.model(), "");
    let file = one_file(&world);
    world.obtain_for("other").assert_made(&world.model(), "");
    let other = world
        .files()
        .into_iter()
        .find(|path| *path != file)
        .unwrap();
    fs::rename(other, &file).unwrap();
    world.obtain().assert_made(
        &world.model(),
        "instruction set is other, and test was expected",
    );

    let stranger = World::new();
    fs::write(&stranger.path, b"a stranger").unwrap();
    stranger.obtain().assert_made(&stranger.model(), "");
    fs::copy(one_file(&stranger), &file).unwrap();
    world.obtain().assert_made(&world.model(), "its content is");
}

#[test]
fn a_directory_in_its_place_is_an_error_that_names_it() {
    let world = World::new();
    world.obtain().assert_made(&world.model(), "");
    let file = one_file(&world);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = world.obtain().result.unwrap_err().to_string();
    assert!(error.contains("prepared"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever happens to a file, what comes out is right, and is made anew where a byte differs.
    #[test]
    fn bytes_changed_at_random(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let world = World::new();
        world.obtain().assert_made(&world.model(), "");
        let file = one_file(&world);
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        for (at, byte) in changes {
            let at = at.index(bad.len());
            bad[at] = byte;
        }
        if let Some(cut) = cut {
            bad.truncate(cut.index(good.len()));
        }
        replace(&file, &bad);
        let run = world.obtain();
        let obtained = run.result.as_ref().unwrap();
        prop_assert_eq!(obtained.made, bad != good);
        prop_assert_eq!(obtained.replaced.is_some(), bad != good);
        crate::world::assert_right(&obtained.image, &world.model());
    }
}
