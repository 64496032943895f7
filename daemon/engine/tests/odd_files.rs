//! Files that are not what they seem: one request pays for it, or nobody, and never with another text.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{LIMITS, Ran, SMALL, run, run_all};
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadError, LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::DraftKind;
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{FinishReason, Output, Request, RequestFailure};
use tandem_model::TokenId;
use tandem_model::testing::tiny::VOCABULARY;
use tandem_model::testing::{Format, GgufWriter, Random, TinyModel};

const TARGET: TinyModel = TinyModel {
    architecture: "llama",
    layers: 3,
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

/// The same weights whatever the rows: those beyond the tokens come last, and are `scale` times as large.
fn padded(model: TinyModel, rows: usize, scale: f32) -> Vec<u8> {
    let mut random = Random(model.seed);
    model.gguf_of(rows, |name, shape| {
        let (middle, spread) = match name.ends_with("norm.weight") {
            true => (1.0, 0.05),
            false => (0.0, 0.3),
        };
        let count: usize = shape.iter().product();
        let plain = VOCABULARY * model.width;
        let mut value = |at: usize| {
            let beyond = name == "token_embd.weight" && at >= plain;
            (middle + spread * random.normal()) * if beyond { scale } else { 1.0 }
        };
        let bytes = (0..count).flat_map(|at| value(at).to_le_bytes()).collect();
        (Format::F32, bytes)
    })
}

fn load(directory: &Path, target: &[u8], draft: &[u8]) -> Result<ModelPair, LoadError> {
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let files = PairFiles {
        target: write("target.gguf", target),
        draft: DraftSource::Model(write("draft.gguf", draft)),
    };
    ModelPair::load(&files, &LOAD, &mut |_| {})
}

fn engine(target: &[u8], draft: &[u8]) -> Engine {
    let directory = tempfile::tempdir().expect("a directory");
    let pair = load(directory.path(), target, draft).expect("sound files");
    let options = EngineOptions {
        lookup_history: Some(1 << 20),
        ..LIMITS
    };
    Engine::new(pair, options)
}

fn prompt(tokens: usize) -> Vec<TokenId> {
    (0..tokens).map(|at| (at * 31 % 200) as TokenId).collect()
}

/// Drafts so many tokens in each step with the kinds named.
fn drafting(kinds: &[DraftKind], prompt: Vec<TokenId>, tokens: usize) -> Request {
    let mut allowed = [false; DraftKind::COUNT];
    for kind in kinds {
        allowed[kind.index()] = true;
    }
    let mut request = Request::new(prompt, tokens);
    request.drafters = Some(allowed);
    request.draft_length = Some(3);
    request.stop.ignore_eos = true;
    request
}

fn drafted(ran: &Ran) -> u64 {
    ran.end.as_ref().expect("it ended").1.draft_tokens
}

/// Greedy, with a seed, and with randomness of its own.
fn ways() -> [SamplingParams; 3] {
    let warm = SamplingParams {
        temperature: 0.9,
        ..SamplingParams::default()
    };
    let seeded = SamplingParams {
        seed: Some(5),
        ..warm.clone()
    };
    [SamplingParams::greedy(), seeded, warm]
}

#[test]
fn a_token_that_the_draft_does_not_know_costs_nobody_else_the_draft() {
    let target = padded(TARGET, VOCABULARY + 64, 0.01);
    let small = TinyModel {
        layers: 1,
        ..TARGET
    };
    let mut engine = engine(&target, &padded(small, VOCABULARY, 1.0));
    let beyond = (VOCABULARY + 48) as TokenId;
    for kinds in [
        &[DraftKind::Model][..],
        &[DraftKind::Lookup, DraftKind::Model],
    ] {
        for sampling in ways() {
            // Its own text is full of it, so that lookup guesses it too.
            let mut biased = drafting(kinds, prompt(20), 30);
            biased.sampling = sampling.clone();
            biased.sampling.logit_bias = BTreeMap::from([(beyond, 100.0)]);
            let ran = run(&mut engine, biased);
            assert!(
                ran.tokens.iter().all(|token| *token == beyond),
                "{:?}",
                ran.tokens
            );
            // Given in the prompt, the token is beyond the draft as well.
            let mut given = prompt(20);
            given[3] = beyond;
            let mut request = drafting(kinds, given, 10);
            request.sampling = sampling.clone();
            let ran = run(&mut engine, request);
            assert_eq!(ran.tokens.len(), 10);
            let (_, stats) = ran.end.expect("it ended");
            if kinds.len() == 1 {
                assert_eq!(stats.draft_tokens, 0);
                let reason = stats.off_reason.expect("it was decoded plainly");
                assert!(reason.contains(&beyond.to_string()), "{reason}");
            }
            // Beside one that the draft serves.
            let mut biased = drafting(kinds, prompt(20), 30);
            biased.sampling.logit_bias = BTreeMap::from([(beyond, 100.0)]);
            engine.submit(biased).expect("a sound request");
            let id = engine
                .submit(drafting(kinds, prompt(24), 30))
                .expect("a sound request");
            let ran = run_all(&mut engine).remove(&id).expect("it ran");
            assert!(drafted(&ran) > 0);
            assert_eq!(engine.speculation_off_reason(), None);
        }
    }
}

#[test]
fn a_draft_with_more_rows_than_the_target_proposes_none_of_them() {
    let target = padded(TARGET, VOCABULARY, 1.0);
    let small = TinyModel {
        layers: 1,
        ..TARGET
    };
    // Rows so large that they would lead nearly always.
    let mut engine = engine(&target, &padded(small, VOCABULARY + 64, 40.0));
    for sampling in ways() {
        let request = |speculation| Request {
            speculation,
            sampling: sampling.clone(),
            ..drafting(&[DraftKind::Model], prompt(20), 60)
        };
        let plain = run(&mut engine, request(false));
        let ran = run(&mut engine, request(true));
        assert!(drafted(&ran) > 0);
        if sampling.seed.is_some() || sampling.is_greedy() {
            assert_eq!(ran.tokens, plain.tokens);
        }
        assert_eq!(ran.tokens.len(), 60);
        assert_eq!(engine.speculation_off_reason(), None);
    }
}

#[test]
fn a_draft_stops_where_it_was_trained_to_and_the_text_goes_on() {
    let target = padded(TARGET, VOCABULARY, 1.0);
    let short = TinyModel {
        layers: 1,
        context_length: 64,
        ..TARGET
    };
    let draft = padded(short, VOCABULARY, 1.0);
    let directory = tempfile::tempdir().expect("a directory");
    let pair = load(directory.path(), &target, &draft).expect("sound files");
    let warnings = pair.report().warnings.join("\n");
    for part in ["draft \"tiny\"", "64", "256"] {
        assert!(warnings.contains(part), "{part:?} is missing in {warnings}");
    }
    let mut engine = engine(&target, &draft);
    for sampling in ways().into_iter().take(2) {
        for kinds in [
            &[DraftKind::Model][..],
            &[DraftKind::Lookup, DraftKind::Model],
        ] {
            for (given, tokens) in [(20, 120), (62, 20), (63, 20), (64, 20), (65, 20), (100, 60)] {
                let request = |speculation| Request {
                    speculation,
                    sampling: sampling.clone(),
                    ..drafting(kinds, prompt(given), tokens)
                };
                let plain = run(&mut engine, request(false));
                let ran = run(&mut engine, request(true));
                assert_eq!(ran.tokens, plain.tokens, "{given} tokens and {tokens}");
                let (_, stats) = ran.end.expect("it ended");
                if kinds.len() == 1 {
                    assert_eq!(
                        stats.draft_tokens > 0,
                        given < 64,
                        "{given} and {tokens}: {stats:?}"
                    );
                } else if given == 100 {
                    assert!(stats.draft_tokens > 0, "lookup goes on: {stats:?}");
                }
                if kinds.len() == 1 && given >= 64 {
                    let reason = stats.off_reason.expect("it was decoded plainly");
                    assert!(reason.contains("trained for 64 tokens"), "{reason}");
                }
            }
        }
    }
    assert_eq!(engine.speculation_off_reason(), None);
}

/// A model of which one token overflows: its row is so large that its scaled embedding is infinite.
fn overflowing(token: usize) -> GgufWriter {
    let head: Vec<u8> = {
        let mut random = Random(3);
        let values = (0..TARGET.width * VOCABULARY).map(|_| 0.3 * random.normal());
        values.flat_map(f32::to_le_bytes).collect()
    };
    TARGET
        .writer()
        .f32("llama.embedding_scale", 4.0)
        .raw_tensor("output.weight", &[32, VOCABULARY as u64], 0, &head)
        .with_changed("token_embd.weight", |bytes| {
            let row = &mut bytes[token * 4 * TARGET.width..][..4 * TARGET.width];
            for float in row.as_chunks_mut::<4>().0 {
                *float = 3e38f32.to_le_bytes();
            }
        })
}

#[test]
fn logits_that_are_no_numbers_fail_the_request_and_no_other() {
    let small = TinyModel {
        layers: 1,
        ..TARGET
    };
    let mut engine = engine(&overflowing(201).finish(), &small.gguf());
    for kinds in [&[][..], &[DraftKind::Lookup, DraftKind::Model]] {
        for sampling in ways() {
            let good = || Request {
                sampling: sampling.clone(),
                ..drafting(kinds, prompt(20), 40)
            };
            let alone = run(&mut engine, good());
            let mut broken = prompt(20);
            broken[7] = 201;
            let broken = Request {
                logprobs: Some(3),
                sampling: sampling.clone(),
                ..drafting(kinds, broken, 40)
            };
            let neighbour = engine.submit(good()).expect("sound");
            let id = engine.submit(broken).expect("sound");
            let (mut failures, mut tokens, mut ends) = (Vec::new(), Vec::new(), 0);
            while engine.has_work() {
                for output in engine
                    .step(&std::time::Instant::now)
                    .expect("the engine lives")
                {
                    match output {
                        Output::Failed { id, error } => failures.push((id, error)),
                        Output::Tokens { id, token_ids, .. } => {
                            assert_eq!(id, neighbour, "nothing comes of what failed");
                            tokens.extend(token_ids);
                        }
                        Output::Finished { id, reason, .. } => {
                            assert_eq!((id, reason), (neighbour, FinishReason::Length));
                            ends += 1;
                        }
                        Output::Admitted { .. } => {}
                    }
                }
            }
            let error = RequestFailure::NoFiniteLogits { position: 20 };
            assert_eq!(failures, [(id, error)]);
            assert_eq!((tokens.len(), ends), (40, 1));
            if sampling.seed.is_some() || sampling.is_greedy() {
                assert_eq!(tokens, alone.tokens);
            }
        }
    }
    assert_eq!(engine.memory().target_kv, 0);
}

#[test]
fn weights_that_are_no_numbers_are_refused_by_tensor_and_place() {
    let broken = |value: f32| {
        TARGET
            .writer()
            .with_changed("blk.1.ffn_up.weight", |bytes| {
                bytes[4 * (32 * 5 + 9)..][..4].copy_from_slice(&value.to_le_bytes());
            })
    };
    let prepared = tempfile::tempdir().expect("a directory");
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in [None, Some(prepared.path().to_owned())] {
            let directory = tempfile::tempdir().expect("a directory");
            let target = directory.path().join("target.gguf");
            std::fs::write(&target, broken(value).finish()).expect("written");
            let options = LoadOptions {
                prepared: place.map(|directory| tandem_model::load::PreparedOptions {
                    directory,
                    limit_bytes: 1 << 30,
                }),
                device: common::CPU,
                ..LOAD
            };
            let files = PairFiles {
                target,
                draft: DraftSource::None,
            };
            let error = ModelPair::load(&files, &options, &mut |_| {}).expect_err("it is refused");
            let error = error.to_string();
            for part in ["blk.1.ffn_up.weight", "row 5", "column 9", "target.gguf"] {
                assert!(error.contains(part), "{part:?} is missing in {error}");
            }
        }
    }
}
