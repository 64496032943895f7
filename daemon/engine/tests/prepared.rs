//! Pairs whose weights are mapped: what loads find and make, what the report says, and that the text is the same. On the CPU,
//! whose kernels alone have a form of their own; a device under test that is another leaves the directory alone.

mod common;

use std::fs;
use std::path::Path;

use tandem_engine::Request;
use tandem_engine::engine::Engine;
use tandem_engine::pair::{DraftSource, LoadError, LoadOptions, ModelPair, PairFiles, PairReport};
use tandem_engine::sampling::SamplingParams;
use tandem_model::hardware::Device;
use tandem_model::load::{FileError, LoadStage, PreparedOptions, WeightSource};

/// Without prepared weights.
const PACKED: LoadOptions = LoadOptions {
    device: common::CPU,
    ..common::LOAD
};

/// Loads and returns the pair with the stages of loading, each with its role.
fn load(files: &PairFiles, directory: &Path) -> (ModelPair, Vec<(&'static str, LoadStage)>) {
    let options = LoadOptions {
        prepared: Some(PreparedOptions {
            directory: directory.to_owned(),
            limit_bytes: 1 << 30,
        }),
        ..PACKED
    };
    let mut stages = Vec::new();
    let pair = ModelPair::load(files, &options, &mut |progress| {
        let stage = (progress.role, progress.stage);
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
        assert!(progress.done_bytes <= progress.total_bytes);
    });
    (pair.expect("the default pair loads"), stages)
}

fn draft_alone() -> PairFiles {
    PairFiles {
        target: common::default_draft(),
        draft: DraftSource::None,
    }
}

/// What the damage of prepared files came to; other findings are not of interest here.
fn warnings(report: &PairReport) -> Vec<&String> {
    let of_weights = |warning: &&String| warning.contains("weights");
    report.warnings.iter().filter(of_weights).collect()
}

fn text(pair: ModelPair) -> String {
    let prompt = common::encode(&pair, "The three primary colours are");
    let mut engine = Engine::new(pair, common::LIMITS);
    let mut request = Request::new(prompt, 48);
    // At a high temperature, the least difference of logits shows soon.
    request.sampling = SamplingParams {
        temperature: 1.5,
        seed: Some(11),
        ..SamplingParams::greedy()
    };
    common::run(&mut engine, request).text
}

#[test]
fn a_second_load_maps_what_the_first_prepared_and_says_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = PairFiles {
        target: common::default_target(),
        draft: DraftSource::Model(common::default_draft()),
    };
    let (first, stages) = load(&files, directory.path());
    for role in ["draft", "target"] {
        assert!(stages.contains(&(role, LoadStage::Preparing)), "{stages:?}");
    }
    let sources = |pair: &ModelPair| {
        let report = pair.report();
        let draft = report.draft.as_ref().expect("there is a draft");
        (report.target.weights, draft.weights)
    };
    let prepared = (WeightSource::Prepared, WeightSource::Prepared);
    assert_eq!(sources(&first), prepared);

    let (second, stages) = load(&files, directory.path());
    assert!(
        !stages
            .iter()
            .any(|(_, stage)| *stage == LoadStage::Preparing || *stage == LoadStage::Reading),
        "{stages:?}"
    );
    let mapped = (WeightSource::Mapped, WeightSource::Mapped);
    assert_eq!(sources(&second), mapped);
    let target = &second.report().target;
    assert!(
        target.mapped_bytes >= target.weight_bytes
            && target.mapped_bytes < target.weight_bytes * 11 / 10,
        "{target:?}"
    );
    assert_eq!(warnings(second.report()), [""; 0]);

    let packed = ModelPair::load(&files, &PACKED, &mut |_| {}).expect("it loads");
    assert_eq!(packed.report().target.weights, WeightSource::Memory);
    assert_eq!(packed.report().target.mapped_bytes, 0);
    let expected = text(packed);
    assert_eq!(text(first), expected);

    let engine = Engine::new(second, common::LIMITS);
    let memory = engine.memory();
    assert!(
        memory.mapped_weights >= memory.target_weights + memory.draft_weights,
        "{memory:?}"
    );
    let mut engine = engine;
    engine.shed_draft("a test");
    let without = engine.memory().mapped_weights;
    assert!(without < memory.mapped_weights && without > 0);

    let (third, _) = load(&files, directory.path());
    assert_eq!(text(third), expected);
}

#[test]
fn a_damaged_file_is_made_anew_with_one_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, _) = load(&draft_alone(), directory.path());
    assert_eq!(warnings(first.report()), [""; 0]);
    let expected = text(first);
    let file = fs::read_dir(directory.path())
        .expect("it is there")
        .map(|item| item.expect("it reads").path())
        .find(|path| path.extension().is_some_and(|ending| ending == "prepared"))
        .expect("a prepared file");
    let mut bytes = fs::read(&file).expect("it reads");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&file, bytes).expect("it writes");

    let (second, _) = load(&draft_alone(), directory.path());
    let found = warnings(second.report());
    assert!(
        matches!(found[..], [warning] if warning.contains("checksum") && warning.contains("target")),
        "{found:?}"
    );
    assert_eq!(second.report().target.weights, WeightSource::Prepared);
    assert_eq!(text(second), expected);
    let (third, _) = load(&draft_alone(), directory.path());
    assert_eq!(warnings(third.report()), [""; 0]);
}

#[test]
fn without_a_place_the_weights_are_packed_in_memory_with_one_warning() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("it writes");
    let (pair, stages) = load(&draft_alone(), &file.join("prepared"));
    assert_eq!(stages, [("target", LoadStage::Reading)]);
    let report = pair.report();
    let bytes = report.target.weight_bytes.to_string();
    let found = warnings(report);
    assert!(
        matches!(found[..], [warning] if warning.contains(&bytes) && warning.contains("cannot create")),
        "{found:?}"
    );
    assert_eq!(
        (report.target.weights, report.target.mapped_bytes),
        (WeightSource::Memory, 0)
    );
    assert!(!text(pair).is_empty());
}

#[test]
fn an_exit_adapter_is_not_taken_out_of_its_targets_file() {
    // Each has a `blk.0` of the same shapes: mixed up, they would draft nothing that stands.
    let directory = tempfile::tempdir().expect("a directory");
    let files = PairFiles {
        target: common::default_target(),
        draft: DraftSource::Adapter(common::default_exit_adapter()),
    };
    let accepted = |pair: ModelPair| {
        let prompt = common::encode(&pair, "The three primary colours are");
        let mut request = Request::new(prompt, 32);
        request.draft_length = Some(2);
        let ran = common::run(&mut Engine::new(pair, common::LIMITS), request);
        ran.end.expect("it ended").1.accepted_tokens
    };
    let packed = ModelPair::load(&files, &PACKED, &mut |_| {}).expect("it loads");
    let expected = accepted(packed);
    assert!(expected > 5, "{expected} accepted");
    let (mapped, stages) = load(&files, directory.path());
    assert!(stages.contains(&("exit adapter", LoadStage::Reading)));
    assert_eq!(accepted(mapped), expected);
}

#[test]
fn only_the_cpu_prepares_weights() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LoadOptions {
        prepared: Some(PreparedOptions {
            directory: directory.path().to_owned(),
            limit_bytes: 1 << 30,
        }),
        ..common::LOAD
    };
    let pair = ModelPair::load(&draft_alone(), &options, &mut |_| {}).expect("it loads");
    let target = &pair.report().target;
    let files = fs::read_dir(directory.path()).expect("it is there").count();
    match common::DEVICE {
        Device::Cpu(_) => assert!(target.mapped_bytes > 0 && files > 0),
        _ => {
            assert_eq!(target.weights, WeightSource::Memory);
            assert_eq!((target.mapped_bytes, files), (0, 0));
        }
    }
    assert_eq!(warnings(pair.report()), [""; 0]);
}

/// Loads a copy of the draft alone, with something done to it when its weights are about to be read.
fn load_disturbed(
    prepared: Option<PreparedOptions>,
    disturb: impl Fn(&Path),
) -> Result<ModelPair, LoadError> {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("m.gguf");
    fs::copy(common::default_draft(), &target).expect("a copy");
    let files = PairFiles {
        target: target.clone(),
        draft: DraftSource::None,
    };
    let options = LoadOptions { prepared, ..PACKED };
    let mut disturbed = false;
    ModelPair::load(&files, &options, &mut |progress| {
        let reads = matches!(progress.stage, LoadStage::Reading | LoadStage::Preparing);
        if reads && !disturbed {
            disturbed = true;
            disturb(&target);
        }
    })
}

#[test]
fn a_file_that_is_written_to_while_it_is_read_is_refused_and_one_that_is_replaced_is_not() {
    let expected = text(load_disturbed(None, |_| {}).expect("a sound file"));
    for prepare in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let prepared = || {
            prepare.then(|| PreparedOptions {
                directory: directory.path().to_owned(),
                limit_bytes: 1 << 30,
            })
        };
        let written = load_disturbed(prepared(), |path| {
            let file = fs::File::options().write(true).open(path);
            let bytes = fs::metadata(path).expect("a file").len();
            let file = file.expect("it can be opened");
            std::os::unix::fs::FileExt::write_all_at(&file, &[0], bytes - 1).expect("written");
        });
        assert!(
            matches!(&written, Err(LoadError::File(FileError::Changed { .. }))),
            "{prepare}: {written:?}"
        );
        let replaced = load_disturbed(prepared(), |path| {
            let new = path.with_extension("new");
            fs::write(&new, "another file").expect("written");
            fs::rename(new, path).expect("renamed");
        });
        let replaced = replaced.expect("the file that was opened is whole");
        assert!(warnings(replaced.report()).is_empty(), "{prepare}");
        assert_eq!(text(replaced), expected, "{prepare}");
    }
}
