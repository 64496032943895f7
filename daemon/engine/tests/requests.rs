//! What a request may count on, shown on tiny models on the device under test: real forwards, drafts that are always right
//! and drafts that are mostly wrong.

mod common;

use std::time::{Duration, Instant};

use common::{LIMITS, Ran, SMALL, run, run_all};
use tandem_engine::engine::{Engine, EngineOptions, RequestError};
use tandem_engine::pair::{DraftSource, LoadError, LoadOptions, ModelPair, PairFiles};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{FinishReason, Output, Request};
use tandem_model::TokenId;
use tandem_model::testing::TinyModel;

const TARGET: TinyModel = TinyModel {
    architecture: "llama",
    layers: 2,
    width: 32,
    inner: 64,
    heads: 4,
    kv_heads: 2,
    context_length: 256,
    seed: 7,
    spread: 0.5,
};
const STRANGER: TinyModel = TinyModel {
    layers: 1,
    seed: 8,
    ..TARGET
};

const LOAD: LoadOptions = LoadOptions {
    context_length: None,
    budget: 1 << 30,
    max_step_rows: 64,
    device: SMALL,
    draft_device: None,
    prepared: None,
};

fn load(draft: Option<TinyModel>, options: &LoadOptions) -> Result<ModelPair, LoadError> {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, model: TinyModel| {
        let path = dir.path().join(name);
        std::fs::write(&path, model.gguf()).expect("written");
        path
    };
    let files = PairFiles {
        target: write("target.gguf", TARGET),
        draft: draft.map_or(DraftSource::None, |draft| {
            DraftSource::Model(write("draft.gguf", draft))
        }),
    };
    ModelPair::load(&files, options, &mut |_| {})
}

fn engine(draft: Option<TinyModel>) -> Engine {
    Engine::new(load(draft, &LOAD).expect("sound files"), LIMITS)
}

fn prompt() -> Vec<TokenId> {
    b"The quick brown fox"
        .iter()
        .map(|byte| TokenId::from(*byte))
        .collect()
}

/// A request that never ends by an end token, since random models say anything at any time.
fn request(max_tokens: usize) -> Request {
    let mut request = Request::new(prompt(), max_tokens);
    request.stop.ignore_eos = true;
    request
}

fn reason(ran: &Ran) -> &FinishReason {
    &ran.end.as_ref().expect("it ended").0
}

#[test]
fn text_with_a_seed_depends_on_the_seed_alone() {
    let seeded = |temperature: f32, draft_length: Option<usize>| {
        let mut request = request(60);
        request.sampling = SamplingParams {
            temperature,
            top_p: 0.95,
            presence_penalty: 0.3,
            seed: Some(42),
            ..SamplingParams::greedy()
        };
        request.draft_length = draft_length;
        request
    };
    for temperature in [0.0, 0.7, 1.2] {
        let expected = run(&mut engine(None), seeded(temperature, None));
        for draft in [TARGET, STRANGER] {
            for length in 1..=8 {
                let mut engine = engine(Some(draft));
                let got = run(&mut engine, seeded(temperature, Some(length)));
                assert_eq!(
                    got.tokens, expected.tokens,
                    "temperature {temperature}, {length} drafted"
                );
                let (_, stats) = got.end.expect("it ended");
                let right = draft.seed == TARGET.seed;
                assert_eq!(
                    stats.accepted_tokens == stats.draft_tokens,
                    right,
                    "the same model guesses right"
                );
            }
            // Shed in mid-stream, after any number of steps.
            for after in [1, 3, 10] {
                let mut engine = engine(Some(draft));
                let id = engine.submit(seeded(temperature, Some(3))).expect("sound");
                let mut tokens = Vec::new();
                for step in 0.. {
                    if step == after {
                        engine.shed_draft("memory is short");
                    }
                    if !engine.has_work() {
                        break;
                    }
                    for output in engine.step(&Instant::now).expect("it steps") {
                        if let Output::Tokens {
                            id: of, token_ids, ..
                        } = output
                        {
                            assert_eq!(of, id);
                            tokens.extend(token_ids);
                        }
                    }
                }
                assert_eq!(tokens, expected.tokens, "shed after {after} steps");
            }
        }
    }
}

#[test]
fn what_stops_a_request_stops_it_inside_an_accepted_block() {
    let mut engine = engine(Some(TARGET));
    let mut whole = request(40);
    whole.draft_length = Some(7);
    let free = run(&mut engine, whole.clone());
    assert_eq!(reason(&free), &FinishReason::Length);
    assert_eq!(free.tokens.len(), 40);

    for at in 0..20 {
        let mut limited = whole.clone();
        limited.stop.max_tokens = Some(at + 1);
        let ran = run(&mut engine, limited);
        assert_eq!(
            (&ran.tokens[..], reason(&ran)),
            (&free.tokens[..=at], &FinishReason::Length)
        );

        let mut stopped = whole.clone();
        stopped.stop.token_ids = vec![free.tokens[at]];
        let first = free
            .tokens
            .iter()
            .position(|token| *token == free.tokens[at])
            .expect("it is there");
        let ran = run(&mut engine, stopped);
        assert_eq!(ran.tokens, free.tokens[..=first]);
        assert_eq!(reason(&ran), &FinishReason::StopToken(free.tokens[at]));
    }
    let text: Vec<char> = free.text.chars().collect();
    for at in 3..text.len() - 3 {
        let stop: String = text[at..at + 3].iter().collect();
        let mut stopped = whole.clone();
        stopped.stop.strings = vec![stop.clone()];
        let ran = run(&mut engine, stopped);
        assert_eq!(Some(ran.text.as_str()), free.text.split(&stop).next());
        assert_eq!(reason(&ran), &FinishReason::StopString(stop));
    }
}

#[test]
fn requests_that_cannot_run_are_refused_with_numbers() {
    let mut engine = engine(None);
    let mut refuse = |change: fn(&mut Request)| {
        let mut request = request(10);
        change(&mut request);
        engine.submit(request).expect_err("refused")
    };
    assert!(matches!(
        refuse(|r| r.prompt.clear()),
        RequestError::EmptyPrompt
    ));
    assert!(matches!(
        refuse(|r| r.stop.max_tokens = Some(250)),
        RequestError::ContextOverflow {
            prompt_tokens: 19,
            max_tokens: 250,
            context_length: 256
        }
    ));
    assert!(matches!(
        refuse(|r| r.prompt.resize(256, 1)),
        RequestError::ContextOverflow {
            prompt_tokens: 256,
            ..
        }
    ));
    assert!(matches!(
        refuse(|r| r.prompt.push(257)),
        RequestError::TokenOutOfVocabulary {
            token: 257,
            vocabulary: 257
        }
    ));
    let error = refuse(|r| r.sampling.top_p = 0.0);
    assert!(
        matches!(&error, RequestError::InvalidParam(param) if param.field == "top_p"),
        "{error}"
    );
    assert!(!engine.has_work());
}

#[test]
fn caches_never_exceed_their_budget_and_are_all_given_back() {
    let pair = load(Some(STRANGER), &LOAD).expect("sound files");
    let mut probe = Engine::new(pair, LIMITS);
    probe.submit(request(10)).expect("sound");
    probe.step(&Instant::now).expect("it steps");
    let one = probe.memory().target_kv + probe.memory().draft_kv;
    assert!(one > 0);

    let pair = load(Some(STRANGER), &LOAD).expect("sound files");
    let mut engine = Engine::new(
        pair,
        EngineOptions {
            cache_budget: 3 * one,
            policy: tandem_engine::policy::Policy::Goodput,
            pipelined: tandem_engine::policy::Pipelined::Auto,
            lookup_history: None,
            ..LIMITS
        },
    );
    for _ in 0..8 {
        let mut request = request(200);
        request.draft_length = Some(2);
        engine.submit(request).expect("sound");
    }
    let mut most = 0;
    while engine.has_work() {
        engine.step(&Instant::now).expect("it steps");
        let memory = engine.memory();
        assert!(memory.target_kv + memory.draft_kv <= 3 * one);
        most = most.max(engine.counts().0);
    }
    assert!((1..8).contains(&most), "{most} at once");
    assert_eq!(
        (engine.memory().target_kv, engine.memory().draft_kv),
        (0, 0)
    );

    let pair = load(None, &LOAD).expect("sound files");
    let mut small = Engine::new(
        pair,
        EngineOptions {
            cache_budget: 1000,
            policy: tandem_engine::policy::Policy::Goodput,
            pipelined: tandem_engine::policy::Pipelined::Auto,
            lookup_history: None,
            ..LIMITS
        },
    );
    assert!(matches!(
        small.submit(request(100)).expect_err("refused"),
        RequestError::CacheTooLarge {
            available_bytes: 1000,
            ..
        }
    ));
}

#[test]
fn cancelling_frees_at_once_and_disturbs_nobody() {
    let mut engine = engine(Some(TARGET));
    let expected = run(&mut engine, request(50)).tokens;
    let ids: Vec<_> = (0..12)
        .map(|_| engine.submit(request(50)).expect("sound"))
        .collect();
    for _ in 0..5 {
        engine.step(&Instant::now).expect("it steps");
    }
    // One that runs, one that waits, one that was never there.
    engine.cancel(ids[0]);
    engine.cancel(ids[11]);
    engine.cancel(ids[11]);
    let ran = run_all(&mut engine);
    assert!(!ran.contains_key(&ids[0]) && !ran.contains_key(&ids[11]));
    for id in &ids[8..11] {
        assert_eq!(ran[id].tokens, expected);
    }
    assert_eq!(
        (engine.memory().target_kv, engine.memory().draft_kv),
        (0, 0)
    );
}

#[test]
fn a_deadline_ends_a_request_wherever_it_is() {
    let mut engine = engine(None);
    let start = Instant::now();
    let mut soon = request(200);
    soon.deadline = Some(start + Duration::from_secs(10));
    let ids: Vec<_> = (0..9)
        .map(|_| engine.submit(soon.clone()).expect("sound"))
        .collect();
    let mut ended = Vec::new();
    for step in 0..20 {
        // The clock is the caller's: from the sixth step on it is late.
        let now = start + Duration::from_secs(if step < 5 { 1 } else { 11 });
        for output in engine.step(&|| now).expect("it steps") {
            if let Output::Finished { id, reason, stats } = output {
                assert_eq!(reason, FinishReason::TimeLimit);
                ended.push((id, stats.completion_tokens));
            }
        }
    }
    ended.sort();
    assert_eq!(ended.len(), 9);
    assert!(
        ended[..8]
            .iter()
            .all(|(_, tokens)| (3..=5).contains(tokens)),
        "{ended:?}"
    );
    assert_eq!(ended[8], (ids[8], 0), "one waited all along");
    assert!(!engine.has_work());
}

#[test]
fn pairs_are_checked_before_they_are_loaded() {
    let small = LoadOptions {
        budget: 100_000,
        ..LOAD
    };
    let error = load(Some(STRANGER), &small).expect_err("too large");
    assert!(
        matches!(
            error,
            LoadError::Budget {
                budget: 100_000,
                ..
            }
        ),
        "{error}"
    );

    let loaded = load(Some(STRANGER), &LOAD).expect("sound files");
    let warnings = &loaded.report().warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains("15 to 25")),
        "{warnings:?}"
    );

    let long = LoadOptions {
        context_length: Some(1000),
        ..LOAD
    };
    let loaded = load(None, &long).expect("sound files");
    assert!(
        loaded.report().warnings[0].contains("256"),
        "{:?}",
        loaded.report().warnings
    );
}
