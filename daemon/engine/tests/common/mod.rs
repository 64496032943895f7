//! The real pair, and running requests to their end.
#![allow(dead_code, reason = "each test binary uses its own part")]

#[path = "../../../model/tests/common/mod.rs"]
mod models;

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

pub(crate) use models::*;
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::{FinishReason, Output, Request, RequestStats, SequenceId};
use tandem_model::TokenId;
use tandem_model::tokenizer::SpecialTokens;

/// The prompts that golden data exists for.
pub(crate) fn prompts() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/golden/prompts");
    let mut prompts: Vec<_> = std::fs::read_dir(dir)
        .expect("the prompts are part of the repository")
        .map(|entry| {
            let path = entry.expect("readable").path();
            let name = path
                .file_stem()
                .expect("named")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read_to_string(path).expect("readable"))
        })
        .collect();
    prompts.sort();
    prompts
}

/// Both files of the default pair, pulled where they are missing.
pub(crate) fn files() -> PairFiles {
    PairFiles {
        target: default_target(),
        draft: DraftSource::Model(default_draft()),
    }
}

pub(crate) const LOAD: LoadOptions = LoadOptions {
    context_length: Some(1024),
    budget: 4 << 30,
    max_step_rows: 64,
    device: DEVICE,
    draft_device: None,
    prepared: None,
};

pub(crate) const LIMITS: EngineOptions = EngineOptions {
    max_sequences: 8,
    max_step_rows: 64,
    cache_budget: 1 << 30,
    policy: tandem_engine::policy::Policy::Goodput,
    pipelined: tandem_engine::policy::Pipelined::Auto,
    lookup_history: None,
};

/// The default pair, or its target alone.
pub(crate) fn pair(draft: bool) -> ModelPair {
    let mut files = files();
    if !draft {
        files.draft = DraftSource::None;
    }
    ModelPair::load(&files, &LOAD, &mut |_| {}).expect("the default pair loads")
}

pub(crate) fn encode(pair: &ModelPair, text: &str) -> Vec<TokenId> {
    pair.tokenizer().encode(text, SpecialTokens::Parse)
}

/// Everything that a request produced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) text: String,
    pub(crate) end: Option<(FinishReason, RequestStats)>,
}

/// Steps until nothing is left to do.
pub(crate) fn run_all(engine: &mut Engine) -> HashMap<SequenceId, Ran> {
    run_all_by(engine, &Instant::now, |_, _| {})
}

/// The same by another clock, with `before` called before each step with its number.
pub(crate) fn run_all_by(
    engine: &mut Engine,
    clock: &dyn Fn() -> Instant,
    mut before: impl FnMut(&mut Engine, usize),
) -> HashMap<SequenceId, Ran> {
    let mut ran: HashMap<SequenceId, Ran> = HashMap::new();
    for step in 0.. {
        before(engine, step);
        if !engine.has_work() {
            break;
        }
        for output in engine.step(clock).expect("steps do not fail here") {
            match output {
                Output::Admitted { .. } => {}
                Output::Tokens {
                    id,
                    token_ids,
                    text,
                    ..
                } => {
                    let ran = ran.entry(id).or_default();
                    ran.tokens.extend(token_ids);
                    ran.text.push_str(&text);
                }
                Output::Failed { id, error } => panic!("{id:?} failed: {error}"),
                Output::Finished { id, reason, stats } => {
                    ran.entry(id).or_default().end = Some((reason, stats))
                }
            }
        }
    }
    ran
}

/// Runs one request alone.
pub(crate) fn run(engine: &mut Engine, request: Request) -> Ran {
    let id = engine.submit(request).expect("a sound request");
    run_all(engine).remove(&id).expect("it ran")
}
