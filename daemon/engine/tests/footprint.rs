//! Mapped weights are no dirty memory. Alone in its process, so that nobody else dirties any. On the CPU, whose kernels alone
//! read weights where they are mapped.
#![cfg(target_os = "linux")]

mod common;

use tandem_engine::Request;
use tandem_engine::engine::Engine;
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_model::load::PreparedOptions;

fn private_dirty_bytes() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("the system says");
    let line = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Private_Dirty:"))
        .expect("the field exists");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib * 1024
}

/// How much dirty memory a loaded pair adds, after it has generated.
fn growth(prepared: Option<PreparedOptions>) -> (u64, u64) {
    let files = PairFiles {
        target: common::default_target(),
        draft: DraftSource::None,
    };
    let options = LoadOptions {
        prepared,
        device: common::CPU,
        ..common::LOAD
    };
    let before = private_dirty_bytes();
    let pair = ModelPair::load(&files, &options, &mut |_| {}).expect("it loads");
    let weights = pair.report().target.weight_bytes;
    let prompt = common::encode(&pair, "Hello");
    let mut engine = Engine::new(pair, common::LIMITS);
    common::run(&mut engine, Request::new(prompt, 4));
    (private_dirty_bytes().saturating_sub(before), weights)
}

#[test]
fn weights_from_a_prepared_file_are_clean() {
    // On a disk: where the system keeps temporary files in memory, mapped ones count as dirty.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let prepared = || {
        Some(PreparedOptions {
            directory: directory.path().to_owned(),
            limit_bytes: 1 << 30,
        })
    };
    // Everything else that loading takes, tokenizer and template, is reused from the second load on.
    let (made, weights) = growth(prepared());
    let (found, _) = growth(prepared());
    let (packed, _) = growth(None);
    let figures = format!(
        "made: {made}, found: {found}, packed: {packed} bytes, for weights of {weights} bytes"
    );
    assert!(packed > weights * 3 / 4, "{figures}: or this tests nothing");
    assert!(found < weights / 4, "{figures}");
    assert!(made < weights / 2, "{figures}");
}
