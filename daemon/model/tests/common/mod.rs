//! The default models, and what tests run on.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tandem_model::gguf::Gguf;
use tandem_model::hardware::Device;
use tandem_model::model::LanguageModel;
use tandem_models::{ModelRef, Store};

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
    tandem_model::testing::load(DEVICE, &gguf, context_length).expect("it loads")
}
