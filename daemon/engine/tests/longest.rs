//! What is promised of a fixed draft length holds at its limit, for chains of a model and for looked-up text.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::{MAX_DRAFT_LENGTH, Pipelined, Policy};
use tandem_engine::{Output, Request, RequestStats, StopConditions};
use tandem_model::TokenId;
use tandem_model::hardware::Device;
use tandem_model::testing::TinyModel;

const CONTEXT: usize = 1024;

/// A tiny model whose draft is itself, or that has none.
fn engine(draft: bool, policy: Policy) -> Engine {
    let directory = tempfile::tempdir().expect("a directory");
    let target: PathBuf = directory.path().join("tiny.gguf");
    let model = TinyModel {
        context_length: CONTEXT,
        ..TinyModel::default()
    };
    std::fs::write(&target, model.gguf()).expect("written");
    let rows = MAX_DRAFT_LENGTH + 1;
    let options = LoadOptions {
        context_length: None,
        budget: 1 << 30,
        max_step_rows: rows,
        device: Device::Cpu(NonZeroUsize::MIN),
        draft_device: None,
        prepared: None,
    };
    let source = match draft {
        true => DraftSource::Model(target.clone()),
        false => DraftSource::None,
    };
    let files = PairFiles {
        target,
        draft: source,
    };
    let pair = ModelPair::load(&files, &options, &mut |_| {});
    let options = EngineOptions {
        max_sequences: 1,
        max_step_rows: rows,
        cache_budget: 1 << 30,
        policy,
        pipelined: Pipelined::Never,
        lookup_history: (!draft).then_some(1 << 20),
    };
    Engine::new(pair.expect("a sound file"), options)
}

/// Greedy decoding of so many tokens; the tokens and what was drafted.
fn run(engine: &mut Engine, request: Request) -> (Vec<TokenId>, RequestStats) {
    engine.submit(request).expect("a sound request");
    let mut tokens = Vec::new();
    loop {
        for output in engine.step(&Instant::now).expect("a step") {
            match output {
                Output::Tokens { token_ids, .. } => tokens.extend(token_ids),
                Output::Finished { stats, .. } => return (tokens, stats),
                Output::Failed { error, .. } => panic!("{error}"),
                Output::Admitted { .. } => {}
            }
        }
    }
}

fn request(prompt: &[TokenId], tokens: usize, draft_length: Option<usize>) -> Request {
    Request {
        draft_length,
        speculation: draft_length.is_some(),
        stop: StopConditions {
            max_tokens: Some(tokens),
            ignore_eos: true,
            ..StopConditions::default()
        },
        ..Request::new(prompt.to_vec(), tokens)
    }
}

/// No token comes twice, so that there is nothing to look up before the text repeats itself.
fn prompt() -> Vec<TokenId> {
    (1..100).collect()
}

#[test]
fn a_chain_is_as_long_as_asked_up_to_the_limit() {
    for length in [1, 15, 16, 17, 33, MAX_DRAFT_LENGTH] {
        // One step reads the prompt and chooses a token, one drafts so many and chooses another.
        let tokens = length + 2;
        let mut asked = engine(true, Policy::Goodput);
        let (plain, _) = run(&mut asked, request(&prompt(), tokens, None));
        let (text, by_request) = run(&mut asked, request(&prompt(), tokens, Some(length)));
        // What steps cost is known by then, as where requests name a length.
        let mut fixed = engine(true, Policy::Fixed(length));
        let _plain = run(&mut fixed, request(&prompt(), tokens, None));
        let left_to_the_policy = Request {
            speculation: true,
            ..request(&prompt(), tokens, None)
        };
        let (same, by_policy) = run(&mut fixed, left_to_the_policy);
        assert_eq!((&text, &same), (&plain, &plain), "{length}");
        for stats in [by_request, by_policy] {
            let did = (
                stats.drafted_steps,
                stats.draft_tokens,
                stats.accepted_tokens,
            );
            assert_eq!(did, (1, length as u64, length as u64), "{length}");
        }
    }
}

#[test]
fn looked_up_text_is_as_long_as_asked_up_to_the_limit() {
    let mut repeated = prompt();
    repeated.extend(1..30);
    for length in [17, 33, MAX_DRAFT_LENGTH] {
        let mut engine = engine(false, Policy::Goodput);
        engine
            .submit(request(&repeated, 200, Some(length)))
            .expect("a sound request");
        // Until the first step that drafts: nothing of the guess need be right.
        let drafted = loop {
            engine.step(&Instant::now).expect("a step");
            let drafted = engine.speculation().drafted_tokens;
            if drafted > 0 {
                break drafted;
            }
        };
        assert_eq!(drafted, length as u64);
    }
}
