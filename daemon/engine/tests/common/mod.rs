//! The real pair, and running requests to their end.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::gguf::Gguf;
use tandem_engine::model::LanguageModel;
use tandem_engine::pair::{Device, DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::tokenizer::SpecialTokens;
use tandem_engine::{FinishReason, Output, Request, RequestStats, SequenceId, TokenId};
use tandem_models::{ModelRef, Store};

/// The prompts that golden data exists for.
pub(crate) fn prompts() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/prompts");
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

/// The target's file, pulled once where it is missing.
pub(crate) fn default_target() -> PathBuf {
    model(&ModelRef::default_target())
}

/// The draft's file, which comes with Tandem.
pub(crate) fn default_draft() -> PathBuf {
    model(&ModelRef::default_draft())
}

/// The exit adapter's file for the default target, which comes with Tandem.
pub(crate) fn default_exit_adapter() -> PathBuf {
    model(&ModelRef::default_exit_adapter())
}

fn model(reference: &ModelRef) -> PathBuf {
    let store =
        Store::from_env(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("a place for models");
    store
        .pull(reference, &mut |_: tandem_models::Event<'_>| {})
        .expect("the default pair can be had")
}

const THREADS: NonZeroUsize = NonZeroUsize::new(2).expect("two");

/// The CPU, for tests of what only the CPU has.
pub(crate) const CPU: Device = Device::Cpu(THREADS);

/// What tests run on that say nothing else: `TANDEM_TEST_DEVICE` when they are compiled, or else the CPU.
pub(crate) const DEVICE: Device = match option_env!("TANDEM_TEST_DEVICE") {
    None => CPU,
    Some(name) => match name.as_bytes() {
        b"cpu" => CPU,
        b"metal" => Device::Metal,
        b"cuda" => Device::Cuda,
        _ => panic!("TANDEM_TEST_DEVICE is cpu, metal or cuda"),
    },
};

/// The same for tiny models, which threads of the CPU would only wait for.
pub(crate) const SMALL: Device = match DEVICE {
    Device::Cpu(_) => Device::Cpu(NonZeroUsize::MIN),
    device => device,
};

/// Loads a model file onto the device under test.
pub(crate) fn model_on_device(path: &Path, context_length: usize) -> Box<dyn LanguageModel> {
    let gguf = Gguf::open(path).expect("a sound file");
    tandem_engine::testing::load(DEVICE, &gguf, context_length).expect("it loads")
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
