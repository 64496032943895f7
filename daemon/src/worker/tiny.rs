//! A model small enough to be written and run by every test.

use std::num::NonZeroUsize;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_model::hardware::Device;
use tandem_model::testing::TinyModel;
pub(super) use tandem_model::testing::tiny::VOCABULARY;

/// Most tokens of prompt and output together.
pub(crate) const CONTEXT: usize = 2048;

/// Loads the model for up to `max_sequences` requests at once.
pub(crate) fn load() -> ModelPair {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("tiny.gguf");
    let model = TinyModel {
        layers: 1,
        context_length: CONTEXT,
        ..TinyModel::default()
    };
    std::fs::write(&target, model.gguf()).expect("written");
    let options = LoadOptions {
        context_length: None,
        budget: 1 << 30,
        max_step_rows: 64,
        device: Device::Cpu(NonZeroUsize::MIN),
        draft_device: None,
        prepared: None,
    };
    let files = PairFiles {
        target,
        draft: DraftSource::None,
    };
    ModelPair::load(&files, &options, &mut |_| {}).expect("a sound file")
}

/// Makes an engine of it for up to `max_sequences` requests at once.
pub(super) fn engine(pair: ModelPair, max_sequences: usize) -> Engine {
    let options = EngineOptions {
        max_sequences,
        max_step_rows: 64,
        cache_budget: 1 << 30,
        policy: tandem_engine::policy::Policy::Goodput,
        pipelined: tandem_engine::policy::Pipelined::Auto,
        lookup_history: None,
    };
    Engine::new(pair, options)
}
