//! What an engine gives back and takes again while it runs: nothing of it changes a text.

mod common;

use std::path::Path;
use std::time::Instant;

use common::{LIMITS, SMALL, run_all_by};
use tandem_engine::ClientKey;
use tandem_engine::engine::{Engine, EngineOptions, RequestError};
use tandem_engine::pair::{DraftSource, LoadError, LoadOptions, LoadedDraft};
use tandem_engine::pair::{ModelPair, PairFiles};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Output, Request};
use tandem_model::TokenId;
use tandem_model::load::FileError;
use tandem_model::testing::TinyModel;

const TARGET: TinyModel = TinyModel {
    architecture: "llama",
    layers: 4,
    width: 32,
    inner: 64,
    heads: 4,
    kv_heads: 2,
    context_length: 256,
    seed: 7,
    spread: 0.5,
};

const LOAD: LoadOptions = LoadOptions {
    context_length: None,
    budget: 1 << 30,
    max_step_rows: 64,
    device: SMALL,
    draft_device: None,
    prepared: None,
};

/// Writes the target and the draft of that kind.
fn files(directory: &Path, kind: &str) -> PairFiles {
    let write = |name: &str, bytes: Vec<u8>| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let smaller = TinyModel {
        layers: 1,
        seed: 8,
        ..TARGET
    };
    PairFiles {
        target: write("target.gguf", TARGET.gguf()),
        draft: match kind {
            "model" => DraftSource::Model(write("draft.gguf", smaller.gguf())),
            "adapter" => DraftSource::Adapter(write("exit.gguf", TARGET.exit_adapter(2))),
            _ => DraftSource::None,
        },
    }
}

fn engine(files: &PairFiles, options: EngineOptions) -> Engine {
    let pair = ModelPair::load(files, &LOAD, &mut |_| {}).expect("sound files");
    Engine::new(pair, options)
}

fn draft(files: &PairFiles) -> LoadedDraft {
    let loaded = ModelPair::load_draft(files, &LOAD, &mut |_| {}).expect("sound files");
    loaded.expect("it has weights of its own")
}

fn request(seed: u64) -> Request {
    let prompt: Vec<TokenId> = "The quick brown fox".bytes().map(TokenId::from).collect();
    let mut request = Request::new(prompt, 60);
    request.stop.ignore_eos = true;
    request.draft_length = Some(3);
    request.sampling = SamplingParams {
        temperature: 0.8,
        seed: Some(seed),
        ..SamplingParams::greedy()
    };
    request
}

/// Texts of three seeds, with something done before each step.
fn texts(engine: &mut Engine, before: impl FnMut(&mut Engine, usize)) -> Vec<Vec<TokenId>> {
    let ids = [1, 2, 3].map(|seed| engine.submit(request(seed)).expect("sound"));
    let mut ran = run_all_by(engine, &Instant::now, before);
    ids.map(|id| ran.remove(&id).expect("it ran").tokens)
        .to_vec()
}

#[test]
fn shed_and_restored_in_mid_stream_the_text_of_a_seed_stays() {
    let dir = tempfile::tempdir().expect("a folder");
    let plain = texts(&mut engine(&files(dir.path(), "none"), LIMITS), |_, _| {});
    for kind in ["model", "adapter"] {
        let files = files(dir.path(), kind);
        let mut engine = engine(&files, LIMITS);
        let weights = engine.memory().draft_weights;
        assert!(weights > 0);
        let mut waiting = None;
        let got = texts(&mut engine, |engine, step| match step % 6 {
            2 => {
                let shed = engine.shed_draft("memory is short");
                assert_eq!(shed.mapped_bytes(), 0);
                let memory = engine.memory();
                assert_eq!((memory.draft_weights, memory.draft_kv), (0, 0));
                assert_eq!(engine.speculation_off_reason(), Some("memory is short"));
            }
            5 => waiting = engine.restore_draft(draft(&files)).expect("it fits"),
            _ => {}
        });
        assert_eq!(got, plain, "{kind}");
        if kind == "adapter" {
            let waited = waiting.expect("an adapter waits for the streams to end");
            assert!(engine.restore_draft(waited).expect("it fits").is_none());
        }
        assert_eq!(engine.speculation_off_reason(), None, "{kind}");
        assert_eq!(engine.memory().draft_weights, weights, "{kind}");
        assert_eq!(texts(&mut engine, |_, _| {}), plain, "{kind}, afterwards");
        assert!(
            engine.speculation().drafted_tokens > 0,
            "or this tests nothing"
        );
    }
}

#[test]
fn restoring_twice_is_restoring_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let files = files(dir.path(), "model");
    let mut engine = engine(&files, LIMITS);
    let weights = engine.memory().draft_weights;
    engine.restore_draft(draft(&files)).expect("it fits");
    assert_eq!(engine.memory().draft_weights, weights);
    let shed = engine.shed_draft("memory is short");
    assert_eq!(shed.weight_bytes(), weights);
    assert_eq!(engine.shed_draft("memory is short").weight_bytes(), 0);
}

#[test]
fn a_draft_of_other_words_is_not_restored() {
    let dir = tempfile::tempdir().expect("a folder");
    let good = files(dir.path(), "model");
    let path = dir.path().join("no-model.gguf");
    std::fs::write(&path, "no model").expect("written");
    let bad = PairFiles {
        draft: DraftSource::Model(path),
        ..good.clone()
    };
    let error = ModelPair::load_draft(&bad, &LOAD, &mut |_| {}).expect_err("it is no model");
    assert!(matches!(
        error,
        LoadError::File(FileError::File { role: "draft", .. })
    ));
    let none = PairFiles {
        draft: DraftSource::Layer(2),
        ..good
    };
    let loaded = ModelPair::load_draft(&none, &LOAD, &mut |_| {}).expect("sound");
    assert!(loaded.is_none(), "layers of the target hold nothing");
}

/// Requests that run after one step.
fn running(engine: &mut Engine) -> usize {
    engine.step(&Instant::now).expect("it steps");
    engine.counts().0
}

#[test]
fn while_held_no_more_run_than_did_before() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut engine = engine(&files(dir.path(), "none"), LIMITS);
    engine.hold(true);
    let first = engine.submit(request(1)).expect("sound");
    engine.submit(request(2)).expect("sound");
    assert_eq!(running(&mut engine), 1, "one may run");
    assert_eq!(running(&mut engine), 1);
    engine.cancel(first);
    assert_eq!(running(&mut engine), 1, "the next one may");
    engine.submit(request(3)).expect("sound");
    engine.hold(false);
    assert_eq!(running(&mut engine), 2);
    engine.submit(request(4)).expect("sound");
    engine.hold(true);
    engine.hold(true);
    assert_eq!(running(&mut engine), 2, "as many as before");
}

#[test]
fn room_that_others_leave_is_waited_for_and_what_never_fits_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut engine = engine(&files(dir.path(), "none"), LIMITS);
    engine.submit(request(1)).expect("sound");
    let one = engine.cache_claims().next.expect("it could run");
    assert!(one > 0);
    engine.set_cache_budget(2 * one, one - 1);
    assert_eq!(running(&mut engine), 0, "others hold the rest");
    engine.set_cache_budget(2 * one, one);
    engine.submit(request(2)).expect("it fits by itself");
    assert_eq!(running(&mut engine), 1);
    let claims = engine.cache_claims();
    assert_eq!((claims.running, claims.next), (one, Some(one)));
    engine.hold(true);
    assert_eq!(
        engine.cache_claims().next,
        None,
        "it would wait all the same"
    );
    engine.hold(false);
    engine.set_cache_budget(one - 1, one - 1);
    match engine.submit(request(3)) {
        Err(RequestError::CacheTooLarge {
            needed_bytes,
            available_bytes,
        }) => assert_eq!((needed_bytes, available_bytes), (one, one - 1)),
        other => panic!("{other:?}"),
    }
    // What was let in before ends all the same.
    let ran = run_all_by(&mut engine, &Instant::now, |_, _| {});
    assert!(ran.values().filter(|ran| ran.end.is_some()).count() == 2);
}

#[test]
fn trimming_forgets_finished_texts() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = EngineOptions {
        lookup_history: Some(1 << 20),
        ..LIMITS
    };
    let mut engine = engine(&files(dir.path(), "none"), options);
    let mut own = request(1);
    own.client = Some(ClientKey(1));
    engine.submit(own).expect("sound");
    while engine.has_work() {
        let outputs = engine.step(&Instant::now).expect("it steps");
        if outputs.iter().any(|o| matches!(o, Output::Finished { .. })) {
            break;
        }
    }
    assert!(engine.memory().draft_kv > 0, "the text is remembered");
    engine.trim();
    assert_eq!(engine.memory().draft_kv, 0);
}
