//! What examples that run a pair read from the command line and the environment.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_model::gguf::Gguf;
use tandem_model::hardware::Device;

/// The number that a variable names, or another where it is not set.
pub(crate) fn number<T: FromStr>(name: &str, otherwise: T) -> Result<T, Box<dyn Error>> {
    match std::env::var(name) {
        Err(_) => Ok(otherwise),
        Ok(named) => named
            .parse()
            .map_err(|_| format!("{name} is `{named}` and should be a number").into()),
    }
}

/// The device that a variable names, the CPU where it is not set.
fn device(name: &str, threads: NonZeroUsize) -> Result<Device, Box<dyn Error>> {
    match std::env::var(name).as_deref() {
        Err(_) | Ok("cpu") => Ok(Device::Cpu(threads)),
        Ok("cuda") => Ok(Device::Cuda),
        Ok("metal") => Ok(Device::Metal),
        Ok(other) => Err(format!("{name} is `{other}` and should be cpu, cuda or metal").into()),
    }
}

/// `THREADS`, or as many as the machine has.
fn threads() -> Result<NonZeroUsize, Box<dyn Error>> {
    let all = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    number("THREADS", all)
}

/// What drafts: a model, an exit adapter, or `-` for the search in the text alone.
fn draft(path: &str) -> Result<DraftSource, Box<dyn Error>> {
    let path = match path {
        "-" => return Ok(DraftSource::None),
        path => PathBuf::from(path),
    };
    let gguf = Gguf::open(&path)?;
    let is_exit = gguf.optional_str("general.architecture")? == Some("llama-exit");
    Ok(match is_exit {
        true => DraftSource::Adapter(path),
        false => DraftSource::Model(path),
    })
}

/// The median; NaN of nothing.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// An engine for a target and what drafts for it, on `DEVICE` and `DRAFT_DEVICE`, which have run the usual steps as they do in the
/// service unless `REHEARSE` is 0.
pub(crate) fn load(
    target: String,
    by: &str,
    limits: EngineOptions,
) -> Result<Engine, Box<dyn Error>> {
    let threads = threads()?;
    let files = PairFiles {
        target: target.into(),
        draft: draft(by)?,
    };
    let options = LoadOptions {
        context_length: Some(4096),
        budget: 64 << 30,
        max_step_rows: limits.max_step_rows,
        device: device("DEVICE", threads)?,
        draft_device: match std::env::var_os("DRAFT_DEVICE") {
            Some(_) => Some(device("DRAFT_DEVICE", threads)?),
            None => None,
        },
        prepared: None,
    };
    let pair = ModelPair::load(&files, &options, &mut |_| {})?;
    let mut engine = Engine::new(pair, limits);
    if number("REHEARSE", 1)? > 0 {
        engine.rehearse(&Instant::now, Duration::from_secs(1))?;
    }
    Ok(engine)
}
