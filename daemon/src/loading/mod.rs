//! Reads pairs: finds their files, checks and loads them, and makes engines. It blocks, so it runs on threads of its own.
//!
//! A draft that cannot be used costs speculation, not the target, unless the caller insists. It never downloads: a model
//! that is not there is an error that says how to fetch it. When and whether to load is not decided here.

mod failure;
mod files;
mod progress;
mod replaced;
mod room;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{LoadOptions, LoadedDraft, ModelPair, PairFiles, PairReport};
use tandem_model::hardware::Device;
use tandem_model::load::{LoadProgress, PreparedOptions, WeightSource};
use tandem_model::template::{ChatTemplate, TemplateError};
use tandem_models::Store;

use crate::config::{DeviceChoice, DraftConfig, format_bytes};
use crate::platform;
use crate::residency::{DraftPlace, Parts, Recipe, Size};

pub(crate) use failure::LoadFailure;
pub(crate) use progress::reporter;
pub(crate) use room::SPARE;

/// Rows of one step where none are configured: few on a CPU, so that a step ends soon after a client cancels.
const CPU_STEP_ROWS: usize = 64;
const GPU_STEP_ROWS: usize = 512;

/// What loading needs to know besides the recipe.
#[derive(Debug)]
pub(crate) struct Loader {
    pub(crate) store: Store,
    /// Where prepared weights are kept.
    pub(crate) prepared_dir: PathBuf,
    /// Threads that compute where the recipe does not say.
    pub(crate) cores: NonZeroUsize,
}

/// How to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// For weights and one context of full length, in bytes.
    pub(crate) budget: u64,
    /// What to do about the draft.
    pub(crate) draft: DraftTerms,
}

/// What to do about a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftTerms {
    /// Load it where that works.
    Try,
    /// Fail without it.
    Insist,
    /// Leave it for later: memory is short.
    Later,
}

/// Most that a load takes longer so that a device has recorded the steps of the first answers.
const REHEARSAL: Duration = Duration::from_millis(500);

/// A pair in memory.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) engine: Engine,
    pub(crate) parts: Parts,
}

impl Loader {
    /// Checks a pair by the headers of its files, and returns how much memory it takes.
    pub(crate) fn inspect(&self, recipe: &Recipe, budget: u64) -> Result<Size, LoadFailure> {
        self.report(recipe, budget).map(|report| size(&report))
    }

    /// Checks a pair by the headers of its files, and returns what they say.
    pub(crate) fn report(&self, recipe: &Recipe, budget: u64) -> Result<PairReport, LoadFailure> {
        let files = self.files(recipe)?;
        Ok(ModelPair::inspect(&files, &self.options(recipe, budget))?)
    }

    /// Loads a pair. `name` is for the log.
    pub(crate) fn load(
        &self,
        name: &str,
        recipe: &Recipe,
        terms: Terms,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Loaded, LoadFailure> {
        let begun = Instant::now();
        tracing::info!(
            pair = name,
            target = %recipe.target,
            draft = %recipe.draft,
            budget = format_bytes(terms.budget),
            "loading"
        );
        let options = self.options(recipe, terms.budget);
        let read = self.read(recipe, &options, terms.draft, progress)?;
        announce(name, &read.pair, options.max_step_rows, begun);
        let parts = Parts {
            tokenizer: Arc::clone(read.pair.tokenizer()),
            template: template(&read.pair),
            report: read.report,
            size: read.size,
            draft: read.draft,
            took: begun.elapsed(),
        };
        let mut engine = Engine::new(
            read.pair,
            EngineOptions {
                policy: recipe.speculation.policy,
                pipelined: recipe.speculation.pipelined,
                lookup_history: recipe.speculation.lookup_history.map(saturating),
                max_sequences: recipe.max_sequences,
                max_step_rows: options.max_step_rows,
                // The engine thread says how much there is.
                cache_budget: 0,
            },
        );
        if let Some(why) = read.why_plain {
            tracing::warn!(pair = name, why, "decoding plainly");
            engine.shed_draft(why);
        }
        if let Err(error) = engine.rehearse(&Instant::now, REHEARSAL) {
            tracing::warn!(pair = name, %error, "the first answers may be slower: the device could not prepare for them");
        }
        Ok(Loaded { engine, parts })
    }

    /// Loads the draft of a pair apart from its target.
    ///
    /// # Errors
    /// Also where a file of the pair is another one by now than `loaded` was: the draft of another model has no business
    /// with this target.
    pub(crate) fn load_draft(
        &self,
        recipe: &Recipe,
        loaded: &PairReport,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Option<LoadedDraft>, LoadFailure> {
        let files = self.files(recipe)?;
        if let Some(role) = self.replaced(recipe, loaded)? {
            return Err(LoadFailure::Replaced { role });
        }
        room::require(SPARE)?;
        // Whether there is room was decided by what the system says is free.
        let options = self.options(recipe, u64::MAX);
        ModelPair::load_draft(&files, &options, progress).map_err(LoadFailure::from)
    }

    fn read(
        &self,
        recipe: &Recipe,
        options: &LoadOptions,
        terms: DraftTerms,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Read, LoadFailure> {
        let alone = self.target_alone(recipe)?;
        if recipe.draft == DraftConfig::None {
            return self.load_within(&alone, options, progress);
        }
        let with_draft = || self.files(recipe);
        match terms {
            DraftTerms::Insist => self.load_within(&with_draft()?, options, progress),
            // Layers of the target take nothing that could wait for later.
            DraftTerms::Later if recipe.draft.file().is_none() => {
                self.load_within(&with_draft()?, options, progress)
            }
            DraftTerms::Try => {
                let tried =
                    with_draft().and_then(|files| self.load_within(&files, options, progress));
                tried.or_else(|failure| {
                    let why = format!("the draft is not used: {failure}");
                    let mut read = self.load_within(&alone, options, progress)?;
                    read.draft = DraftPlace::Unusable;
                    Ok(read.plainly(why))
                })
            }
            DraftTerms::Later => {
                let both = ModelPair::inspect(&with_draft()?, options)?;
                let mut read = self.load_within(&alone, options, progress)?;
                read.size = size(&both);
                // What it will be again.
                read.report.draft = both.draft;
                read.draft = DraftPlace::Shed { freed: 0 };
                Ok(read.plainly("memory is short".to_owned()))
            }
        }
    }

    fn options(&self, recipe: &Recipe, budget: u64) -> LoadOptions {
        let threads = recipe.engine.threads.unwrap_or(self.cores);
        let device = device(recipe.engine.device, threads);
        let default_rows = match device {
            Device::Cpu(_) => CPU_STEP_ROWS,
            _ => GPU_STEP_ROWS,
        };
        let prepared = |limit_bytes| PreparedOptions {
            directory: self.prepared_dir.clone(),
            limit_bytes,
        };
        LoadOptions {
            context_length: recipe.context_length,
            budget,
            max_step_rows: recipe.engine.max_step_rows.unwrap_or(default_rows),
            device,
            draft_device: recipe
                .engine
                .draft_device
                .map(|choice| self::device(choice, threads)),
            prepared: recipe.engine.prepared_limit.map(prepared),
        }
    }
}

/// What was read of a pair.
struct Read {
    pair: ModelPair,
    report: PairReport,
    size: Size,
    draft: DraftPlace,
    /// Why it decodes plainly, where it does.
    why_plain: Option<String>,
}

impl Read {
    fn plainly(self, why: String) -> Self {
        Self {
            why_plain: Some(why),
            ..self
        }
    }
}

fn load(
    files: &PairFiles,
    options: &LoadOptions,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Read, LoadFailure> {
    let pair = ModelPair::load(files, options, progress)?;
    let report = pair.report().clone();
    // Layers of the target hold nothing that could be given up.
    let draft = match &report.draft {
        Some(_) => DraftPlace::Resident,
        None => DraftPlace::None,
    };
    Ok(Read {
        size: size(&report),
        pair,
        report,
        draft,
        why_plain: None,
    })
}

/// Returns the target's chat template with the system's clock, or why it has none.
pub(crate) fn template(pair: &ModelPair) -> Result<Arc<ChatTemplate>, Arc<TemplateError>> {
    match pair.template() {
        Ok(template) => Ok(Arc::new(
            template.with_clock(Arc::new(platform::local_time)),
        )),
        Err(error) => Err(Arc::clone(error)),
    }
}

/// Returns how much memory a pair takes.
pub(crate) fn size(report: &PairReport) -> Size {
    let draft = report.draft.as_ref().map_or(0, |draft| draft.weight_bytes);
    let weights = report.target.weight_bytes + draft;
    Size {
        weights,
        context: report.footprint.saturating_sub(weights),
    }
}

/// Writes what was loaded to the log.
fn announce(name: &str, pair: &ModelPair, max_step_rows: usize, begun: Instant) {
    let report = pair.report();
    for warning in &report.warnings {
        tracing::warn!(pair = name, "{warning}");
    }
    tracing::info!(
        pair = name,
        target = %report.target.name,
        quantization = %report.target.quantization,
        parameters_m = report.target.parameters / 1_000_000,
        draft_parameters_m = report.draft.as_ref().map(|draft| draft.parameters / 1_000_000),
        weights = format_bytes(size(report).weights),
        target_weights = source(report.target.weights),
        exit_layer = report.exit_layer,
        draft_weights = report.draft.as_ref().map(|draft| source(draft.weights)),
        context_tokens = report.context_length,
        max_step_rows,
        backend = report.backend,
        seconds = format!("{:.2}", begun.elapsed().as_secs_f64()),
        "loaded"
    );
}

/// Returns the device that a choice means in this build.
pub(crate) fn device(choice: DeviceChoice, threads: NonZeroUsize) -> Device {
    match choice {
        DeviceChoice::Cpu => Device::Cpu(threads),
        DeviceChoice::Metal => Device::Metal,
        DeviceChoice::Cuda => Device::Cuda,
        DeviceChoice::Auto if cfg!(feature = "metal") => Device::Metal,
        DeviceChoice::Auto if cfg!(feature = "cuda") => Device::Cuda,
        DeviceChoice::Auto => Device::Cpu(threads),
    }
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
