//! Whatever happens to an engine and in whatever order — requests that come, wait, are cancelled or time out, policies that
//! change, a draft that is shed, drafts that go on ahead — the texts of seeds stay, and every cache is given back. On the device
//! under test.

mod common;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{FinishReason, Output, Request, SequenceId};
use tandem_model::TokenId;
use tandem_model::testing::TinyModel;

const CONTEXT: usize = 160;

/// The target, and draft models that are right always, often and hardly ever.
static FILES: LazyLock<(tempfile::TempDir, [PathBuf; 4])> = LazyLock::new(|| {
    let directory = tempfile::tempdir().expect("a directory");
    let target = TinyModel {
        layers: 3,
        context_length: CONTEXT,
        spread: 0.3,
        ..TinyModel::default()
    };
    let shallow = TinyModel {
        layers: 2,
        ..target
    };
    let other = TinyModel { seed: 9, ..shallow };
    let paths = [target, target, shallow, other].map(|model| {
        let name = format!("{}-{}.gguf", model.layers, model.seed);
        let path = directory.path().join(name);
        std::fs::write(&path, model.gguf()).expect("written");
        path
    });
    (directory, paths)
});

fn engine(draft: DraftSource, pipelined: Pipelined, lookup: bool) -> Engine {
    let files = PairFiles {
        target: FILES.1[0].clone(),
        draft,
    };
    let load = LoadOptions {
        context_length: None,
        budget: 1 << 30,
        max_step_rows: 24,
        device: common::SMALL,
        draft_device: None,
        prepared: None,
    };
    let options = EngineOptions {
        max_sequences: 3,
        max_step_rows: 24,
        // Room for two or three requests, so that some wait.
        cache_budget: 200_000,
        policy: Policy::Goodput,
        pipelined,
        lookup_history: lookup.then_some(1 << 16),
    };
    let pair = ModelPair::load(&files, &load, &mut |_| {}).expect("sound files");
    Engine::new(pair, options)
}

#[derive(Clone, Debug)]
struct Ask {
    prompt: Vec<TokenId>,
    temperature: f32,
    seed: u64,
    max_tokens: usize,
    draft_length: Option<usize>,
    speculation: bool,
    in_time: bool,
}

#[derive(Clone, Debug)]
enum Deed {
    Submit(Ask),
    Cancel(usize),
    Steps(u8),
    Policy(Policy),
    Shed,
}

fn ask() -> impl Strategy<Value = Ask> {
    let prompt = prop::collection::vec(32u32..64, 1..60);
    let temperature = prop::sample::select(vec![0.0, 0.7, 1.2]);
    let length = prop::option::of(0usize..9);
    let rare = prop::bool::weighted(0.9);
    (prompt, temperature, 0u64..4, 1usize..40, length, rare, rare).prop_map(
        |(prompt, temperature, seed, max_tokens, draft_length, speculation, in_time)| Ask {
            prompt,
            temperature,
            seed,
            max_tokens,
            draft_length,
            speculation,
            in_time,
        },
    )
}

fn deed() -> impl Strategy<Value = Deed> {
    let policies = vec![
        Policy::Goodput,
        Policy::Threshold,
        Policy::Fixed(1),
        Policy::Fixed(5),
    ];
    prop_oneof![
        6 => ask().prop_map(Deed::Submit),
        2 => (0usize..12).prop_map(Deed::Cancel),
        8 => (1u8..12).prop_map(Deed::Steps),
        1 => prop::sample::select(policies).prop_map(Deed::Policy),
        1 => Just(Deed::Shed),
    ]
}

fn request(ask: &Ask, now: Instant) -> Request {
    Request {
        sampling: SamplingParams {
            temperature: ask.temperature,
            seed: Some(ask.seed),
            ..SamplingParams::default()
        },
        speculation: ask.speculation,
        draft_length: ask.draft_length,
        deadline: (!ask.in_time).then_some(now + Duration::from_millis(20)),
        ..Request::new(ask.prompt.clone(), ask.max_tokens)
    }
}

/// What came of the requests so far.
#[derive(Default)]
struct Heard {
    tokens: HashMap<SequenceId, Vec<TokenId>>,
    ends: HashMap<SequenceId, FinishReason>,
}

fn step(engine: &mut Engine, clock: &dyn Fn() -> Instant, heard: &mut Heard) {
    for output in engine.step(clock).expect("steps do not fail here") {
        match output {
            Output::Admitted { .. } => {}
            Output::Tokens { id, token_ids, .. } => {
                heard.tokens.entry(id).or_default().extend(token_ids);
            }
            Output::Failed { id, error } => panic!("{id:?} failed: {error}"),
            Output::Finished { id, reason, .. } => {
                assert!(heard.ends.insert(id, reason).is_none(), "it ends once");
            }
        }
    }
}

/// Decodes plainly, one text after another; loaded once, because a device takes longer to open than such a text takes.
static PLAIN: LazyLock<Mutex<Engine>> =
    LazyLock::new(|| Mutex::new(engine(DraftSource::None, Pipelined::Never, false)));

/// The text of plain decoding, alone.
fn plain(ask: &Ask) -> Vec<TokenId> {
    let mut engine = PLAIN.lock().unwrap_or_else(PoisonError::into_inner);
    let ask = Ask {
        in_time: true,
        ..ask.clone()
    };
    let id = engine
        .submit(request(&ask, Instant::now()))
        .expect("a sound request");
    let mut heard = Heard::default();
    while engine.has_work() {
        step(&mut engine, &Instant::now, &mut heard);
    }
    heard.tokens.remove(&id).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_happens_changes_a_text_or_keeps_a_cache(
        deeds in prop::collection::vec(deed(), 4..40),
        drafter in 0usize..5,
        always in any::<bool>(),
        lookup in any::<bool>(),
    ) {
        let draft = match drafter {
            0 => DraftSource::None,
            4 => DraftSource::Layer(1),
            model => DraftSource::Model(FILES.1[model].clone()),
        };
        let pipelined = if always { Pipelined::Always } else { Pipelined::Auto };
        let mut engine = engine(draft, pipelined, lookup);
        let now = Cell::new(Instant::now());
        let clock = || {
            now.set(now.get() + Duration::from_micros(100));
            now.get()
        };
        let (mut heard, mut asked, mut cancelled) = (Heard::default(), Vec::new(), Vec::new());
        for deed in deeds {
            match deed {
                Deed::Submit(ask) => {
                    let id = engine.submit(request(&ask, now.get())).expect("a sound request");
                    asked.push((id, ask));
                }
                Deed::Cancel(which) => {
                    if let Some((id, _)) = asked.get(which) {
                        engine.cancel(*id);
                        cancelled.push(*id);
                    }
                }
                Deed::Steps(count) => (0..count).for_each(|_| step(&mut engine, &clock, &mut heard)),
                Deed::Policy(policy) => engine.set_policy(policy),
                Deed::Shed => drop(engine.shed_draft("a test wants its memory")),
            }
        }
        while engine.has_work() {
            step(&mut engine, &clock, &mut heard);
        }
        for (id, ask) in &asked {
            let tokens = heard.tokens.remove(id).unwrap_or_default();
            let expected = plain(ask);
            match heard.ends.get(id) {
                None => prop_assert!(cancelled.contains(id), "a request is lost"),
                Some(FinishReason::TimeLimit) => prop_assert!(!ask.in_time),
                Some(_) => prop_assert_eq!(tokens.len(), expected.len()),
            }
            prop_assert!(expected.starts_with(&tokens), "{:?} is no start of {:?}", tokens, expected);
        }
        let memory = engine.memory();
        prop_assert_eq!(memory.target_kv, 0);
        if !lookup {
            prop_assert_eq!(memory.draft_kv, 0);
        }
    }
}
