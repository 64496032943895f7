//! Files that another program put into the hub's cache.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use tandem_models::{ChoiceError, ModelError};

use crate::hub::{COMMIT, REPO};
use crate::world::{World, parse};

/// Lays out `files` as `huggingface_hub` does after a download from `main`.
fn filled(files: &[&str]) -> World {
    let world = World::new();
    lay_out(&world.repo_dir(), files).expect("there is room for tests");
    world
}

fn lay_out(repo: &Path, files: &[&str]) -> io::Result<()> {
    let snapshot = repo.join("snapshots").join(COMMIT);
    for folder in [&repo.join("refs"), &repo.join("blobs"), &snapshot] {
        fs::create_dir_all(folder)?;
    }
    fs::write(repo.join("refs/main"), COMMIT)?;
    for (index, file) in files.iter().enumerate() {
        let etag = format!("{index:064x}");
        fs::write(repo.join("blobs").join(&etag), file)?;
        symlink(format!("../../blobs/{etag}"), snapshot.join(file))?;
    }
    Ok(())
}

#[test]
fn a_file_is_found_by_every_name_it_has() {
    let world = filled(&["m.Q4_K_M.gguf", "m.Q8_0.gguf", "README.md"]);
    let path = |file: &str| Some(world.repo_dir().join("snapshots").join(COMMIT).join(file));
    for (model, found) in [
        (format!("{REPO}:m.Q8_0.gguf"), path("m.Q8_0.gguf")),
        (format!("{REPO}:q8_0"), path("m.Q8_0.gguf")),
        (format!("{REPO}:Q8_0@main"), path("m.Q8_0.gguf")),
        (format!("{REPO}:Q8_0@{COMMIT}"), path("m.Q8_0.gguf")),
        (REPO.to_owned(), path("m.Q4_K_M.gguf")),
        (format!("{REPO}@v2"), None),
        (format!("{REPO}:Q5_0"), None),
        (format!("{REPO}:README.md.gguf"), None),
        ("acme/other".to_owned(), None),
    ] {
        assert_eq!(world.locate(&model), found, "{model}");
    }
    assert!(
        world.hub.requests("/").is_empty(),
        "locate does not touch the network"
    );
}

#[test]
fn a_link_to_nowhere_is_no_file() {
    let world = filled(&["m.gguf"]);
    fs::remove_file(world.repo_dir().join("blobs").join(format!("{:064x}", 0))).unwrap();
    assert_eq!(world.locate(REPO), None);
}

#[test]
fn several_files_of_one_quantization_are_not_guessed_among() {
    let world = filled(&["a.Q8_0.gguf", "b.Q8_0.gguf"]);
    let error = world
        .store()
        .locate(&parse(&format!("{REPO}:Q8_0")))
        .unwrap_err();
    assert!(
        matches!(error, ModelError::Choice(ChoiceError::Ambiguous { .. })),
        "{error}"
    );
    assert_eq!(world.locate(REPO), None);
}
