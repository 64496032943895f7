//! Loads the configured pairs, one after the other and the default one first, on a thread of its own, and hands each
//! engine to the engine thread. Streams of pairs that are warm already are not disturbed.
//!
//! A draft that cannot be used costs speculation, not the target. It never downloads: a model that is not there is an error that says how to fetch it.

mod budget;
mod progress;

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{
    Device, DraftSource, LoadError, LoadOptions, LoadProgress, ModelPair, PairFiles,
    PreparedOptions, WeightSource,
};
use tandem_models::{ModelError, ModelRef, Store};

use crate::config::{DeviceChoice, DraftConfig, EngineConfig, SpeculationConfig, format_bytes};
use crate::pair::{Pair, Warm};
use crate::worker::Worker;

use budget::share_budget;
use progress::reporter;

/// Rows of one step where none are configured: few on a CPU, so that a step ends soon after a client cancels.
const CPU_STEP_ROWS: usize = 64;
const GPU_STEP_ROWS: usize = 512;

/// What loading needs to know.
#[derive(Debug)]
pub(crate) struct Loader {
    pub(crate) store: Store,
    /// Where prepared weights are kept; `None`: nowhere.
    pub(crate) prepared: Option<PreparedOptions>,
    pub(crate) worker: Worker,
    pub(crate) engine: EngineConfig,
    pub(crate) speculation: SpeculationConfig,
    /// Threads that compute where the config does not say.
    pub(crate) cores: NonZeroUsize,
    /// For all pairs together, in bytes.
    pub(crate) budget: u64,
    pub(crate) max_sequences: usize,
}

/// Asks the loading thread for a pair.
#[derive(Clone, Debug)]
pub(crate) struct LoaderHandle(SyncSender<Arc<Pair>>);

impl LoaderHandle {
    /// Has a pair loaded that was just put to loading.
    pub(crate) fn load(&self, pair: Arc<Pair>) {
        // There is room for every pair, and one that is loading is not put in again.
        if let Err(error) = self.0.try_send(pair) {
            tracing::error!(%error, "the loading thread does not take a pair");
        }
    }
}

/// Why a pair cannot be loaded.
#[derive(Debug, thiserror::Error)]
enum LoadFailure {
    #[error("{model} is not on this machine; run `tandem pull {model}`")]
    Missing { model: ModelRef },
    #[error("{} does not exist", path.display())]
    NoFile { path: PathBuf },
    #[error("cannot look for {model}: {source}")]
    Locate {
        model: ModelRef,
        source: Box<ModelError>,
    },
    #[error(transparent)]
    Load(Box<LoadError>),
    #[error("reading the model files stopped on an internal error; the daemon's log has it")]
    Panic,
}

impl LoadFailure {
    /// Whether it can be different next time without a restart.
    fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::NoFile { .. })
    }
}

impl Loader {
    /// Starts the thread, which loads all pairs and then what it is asked for.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(
        self,
        mut pairs: Vec<Arc<Pair>>,
        default_pair: &str,
    ) -> std::io::Result<LoaderHandle> {
        let (sender, wanted) = sync_channel(pairs.len());
        pairs.sort_by_key(|pair| pair.name != default_pair);
        std::thread::Builder::new()
            .name("tandem-load".to_owned())
            .spawn(move || self.run(&pairs, &wanted))?;
        Ok(LoaderHandle(sender))
    }

    fn run(&self, pairs: &[Arc<Pair>], wanted: &Receiver<Arc<Pair>>) {
        let weights: Vec<u64> = pairs.iter().map(|pair| self.file_bytes(pair)).collect();
        let shares = share_budget(self.budget, &weights);
        let share = |pair: &Pair| {
            let known = pairs
                .iter()
                .zip(&shares)
                .find(|(known, _)| known.index == pair.index);
            known.map_or(0, |(_, share)| *share)
        };
        for pair in pairs.iter().cloned().chain(wanted) {
            let loaded = catch_unwind(AssertUnwindSafe(|| self.load(&pair, share(&pair))));
            if let Err(failure) = loaded.unwrap_or(Err(LoadFailure::Panic)) {
                tracing::error!(pair = %pair.name, error = %failure, "cannot load the pair");
                pair.set_failed(&failure.to_string(), failure.is_missing());
            }
        }
    }

    fn locate(&self, model: &ModelRef) -> Result<PathBuf, LoadFailure> {
        match self.store.locate(model) {
            Ok(Some(path)) => Ok(path),
            Ok(None) => Err(match model {
                ModelRef::Path(path) => LoadFailure::NoFile { path: path.clone() },
                ModelRef::Hub(_) | ModelRef::Bundled(_) => LoadFailure::Missing {
                    model: model.clone(),
                },
            }),
            Err(source) => Err(LoadFailure::Locate {
                model: model.clone(),
                source: Box::new(source),
            }),
        }
    }

    /// Returns the bytes of a pair's files; one that is missing counts as none.
    fn file_bytes(&self, pair: &Pair) -> u64 {
        let bytes = |model: &ModelRef| {
            let meta = self
                .locate(model)
                .ok()
                .and_then(|path| path.metadata().ok());
            meta.map_or(0, |meta| meta.len())
        };
        bytes(&pair.config.target) + pair.config.draft.file().map_or(0, bytes)
    }

    /// Reads a pair. A draft that cannot be used does not take its target down: the pair then decodes plainly, and the
    /// second value says why.
    fn read(
        &self,
        pair: &Arc<Pair>,
        options: &LoadOptions,
    ) -> Result<(ModelPair, Option<String>), LoadFailure> {
        let mut progress = reporter(Arc::clone(pair));
        let alone = PairFiles {
            target: self.locate(&pair.config.target)?,
            draft: DraftSource::None,
        };
        let mut why_plain = None;
        if pair.config.draft != DraftConfig::None {
            let with_draft = self.draft(&pair.config.draft).and_then(|draft| {
                let files = PairFiles {
                    draft,
                    ..alone.clone()
                };
                load(&files, options, &mut progress)
            });
            match with_draft {
                Ok(loaded) => return Ok((loaded, None)),
                Err(failure) => why_plain = Some(failure.to_string()),
            }
        }
        Ok((load(&alone, options, &mut progress)?, why_plain))
    }

    /// Finds what a draft needs.
    fn draft(&self, draft: &DraftConfig) -> Result<DraftSource, LoadFailure> {
        Ok(match draft {
            DraftConfig::None => DraftSource::None,
            DraftConfig::Model(model) => DraftSource::Model(self.locate(model)?),
            DraftConfig::Adapter(model) => DraftSource::Adapter(self.locate(model)?),
            DraftConfig::Layer(layers) => DraftSource::Layer(*layers),
            DraftConfig::MeasuredLayer => DraftSource::MeasuredLayer,
        })
    }

    fn load(&self, pair: &Arc<Pair>, budget: u64) -> Result<(), LoadFailure> {
        let begun = Instant::now();
        let device = device(
            self.engine.device,
            self.engine.threads.unwrap_or(self.cores),
        );
        let default_rows = if matches!(device, Device::Cpu(_)) {
            CPU_STEP_ROWS
        } else {
            GPU_STEP_ROWS
        };
        let max_step_rows = self.engine.max_step_rows.unwrap_or(default_rows);
        let options = LoadOptions {
            context_length: pair.config.context_length,
            budget,
            max_step_rows,
            device,
            prepared: self.prepared.clone(),
        };
        tracing::info!(
            pair = %pair.name,
            target = %pair.config.target,
            draft = %pair.config.draft,
            budget = format_bytes(budget),
            "loading"
        );
        let (loaded, why_plain) = self.read(pair, &options)?;

        let warm = Arc::new(Warm {
            tokenizer: Arc::clone(loaded.tokenizer()),
            template: loaded.template().cloned(),
            report: loaded.report().clone(),
        });
        let report = &warm.report;
        let weights = report.target.weight_bytes
            + report.draft.as_ref().map_or(0, |draft| draft.weight_bytes);
        let cache_budget = budget.saturating_sub(weights);
        for warning in &report.warnings {
            tracing::warn!(pair = %pair.name, "{warning}");
        }
        tracing::info!(
            pair = %pair.name,
            target = %report.target.name,
            quantization = %report.target.quantization,
            parameters_m = report.target.parameters / 1_000_000,
            draft_parameters_m = report.draft.as_ref().map(|draft| draft.parameters / 1_000_000),
            weights = format_bytes(weights),
            target_weights = source(report.target.weights),
            exit_layer = report.exit_layer,
            draft_weights = report.draft.as_ref().map(|draft| source(draft.weights)),
            cache_budget = format_bytes(cache_budget),
            context_tokens = report.context_length,
            max_step_rows,
            backend = report.backend,
            seconds = format!("{:.2}", begun.elapsed().as_secs_f64()),
            "loaded"
        );
        let options = EngineOptions {
            policy: self.speculation.policy,
            pipelined: self.speculation.pipelined,
            lookup_history: self.speculation.lookup_history.map(saturating),
            max_sequences: self.max_sequences,
            max_step_rows,
            cache_budget,
        };
        let mut engine = Engine::new(loaded, options);
        if let Some(why) = why_plain {
            tracing::warn!(pair = %pair.name, why, "decoding plainly: the draft cannot be used");
            engine.shed_draft(format!("the draft is not used: {why}"));
        }
        self.worker
            .install(Arc::clone(pair), warm, Box::new(engine));
        Ok(())
    }
}

fn device(choice: DeviceChoice, threads: NonZeroUsize) -> Device {
    match choice {
        DeviceChoice::Cpu => Device::Cpu(threads),
        DeviceChoice::Metal => Device::Metal,
        DeviceChoice::Cuda => Device::Cuda,
        DeviceChoice::Auto if cfg!(feature = "metal") => Device::Metal,
        DeviceChoice::Auto if cfg!(feature = "cuda") => Device::Cuda,
        DeviceChoice::Auto => Device::Cpu(threads),
    }
}

fn load(
    files: &PairFiles,
    options: &LoadOptions,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<ModelPair, LoadFailure> {
    ModelPair::load(files, options, progress).map_err(|error| LoadFailure::Load(Box::new(error)))
}

fn saturating(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Where weights came from, as the log says it.
fn source(weights: WeightSource) -> &'static str {
    match weights {
        WeightSource::Memory => "in memory",
        WeightSource::Prepared => "prepared now, mapped",
        WeightSource::Mapped => "prepared before, mapped",
    }
}
