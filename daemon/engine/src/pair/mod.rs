//! A target with its draft: checked by their headers before a weight is read, then loaded.

mod draft;
mod error;
mod exit;
#[cfg(test)]
mod hostile;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use tandem_model::hardware::{Device, Hardware};
use tandem_model::load::{
    ExitFile, FileError, LoadProgress, ModelFile, ModelOptions, PreparedOptions,
};
use tandem_model::model::{LanguageModel, check_layers};
use tandem_model::template::{ChatTemplate, TemplateError};
use tandem_model::tokenizer::Tokenizer;

use crate::draft::Drafter;

pub use draft::LoadedDraft;
pub use error::LoadError;
pub use report::PairReport;

/// Parameters of the target per parameter of the draft that tend to pay.
const USUAL_RATIO: std::ops::RangeInclusive<f64> = 15.0..=25.0;

/// Where the weights lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// GGUF file of the target.
    pub target: PathBuf,
    /// What drafts for it.
    pub draft: DraftSource,
}

/// What drafts for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DraftSource {
    /// Nothing: plain decoding.
    #[default]
    None,
    /// A separate model in a GGUF file.
    Model(PathBuf),
    /// The target's own first layers and a trained exit adapter in a GGUF file, which says how many layers.
    Adapter(PathBuf),
    /// The target's own first layers, so many, without an adapter.
    Layer(usize),
    /// The target's own first layers without an adapter, as many as a measurement at loading finds best.
    MeasuredLayer,
}

/// How to load a pair.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Most tokens of prompt and output together; `None`: what the target was trained for.
    pub context_length: Option<usize>,
    /// Bytes that the process may use.
    pub budget: u64,
    /// Most rows of one step.
    pub max_step_rows: usize,
    /// What to run on.
    pub device: Device,
    /// What a draft model runs on; `None`: the same.
    pub draft_device: Option<Device>,
    /// Where weights are kept as the CPU's kernels want them, to be mapped; `None`: each load packs them in memory.
    pub prepared: Option<PreparedOptions>,
}

impl LoadOptions {
    /// For one of the models.
    fn model(&self, context_length: usize) -> ModelOptions<'_> {
        ModelOptions {
            device: self.device,
            prepared: self.prepared.as_ref(),
            context_length,
        }
    }
}

/// A loaded target and its draft.
pub struct ModelPair {
    parts: PairParts,
    template: Result<Arc<ChatTemplate>, Arc<TemplateError>>,
    report: PairReport,
}

/// What an engine is made of.
pub(crate) struct PairParts {
    pub(crate) target: Box<dyn LanguageModel>,
    pub(crate) target_bytes: u64,
    /// How much of it is mapped.
    pub(crate) target_mapped_bytes: u64,
    pub(crate) drafter: Option<Box<dyn Drafter>>,
    pub(crate) tokenizer: Arc<Tokenizer>,
    pub(crate) context_length: usize,
}

impl std::fmt::Debug for ModelPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelPair")
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// Both headers and what follows from them.
struct Inspected {
    target: ModelFile,
    draft: Option<ModelFile>,
    adapter: Option<ExitFile>,
    template: Result<Arc<ChatTemplate>, Arc<TemplateError>>,
    /// The target's.
    hardware: Hardware,
    report: PairReport,
}

fn inspect(files: &PairFiles, options: &LoadOptions) -> Result<Inspected, LoadError> {
    let target = ModelFile::read("target", &files.target)?;
    let (mut draft, mut adapter, mut exit_layer) = (None, None, None);
    match &files.draft {
        DraftSource::None | DraftSource::MeasuredLayer => {}
        DraftSource::Model(path) => draft = Some(ModelFile::read("draft", path)?),
        DraftSource::Adapter(path) => {
            let header = ExitFile::read(path, &target.config)?;
            exit_layer = Some(header.layers());
            adapter = Some(header);
        }
        DraftSource::Layer(layers) => {
            check_layers(*layers, target.config.layers).map_err(|source| FileError::Model {
                role: "target",
                path: files.target.clone(),
                source,
            })?;
            exit_layer = Some(*layers);
        }
    }
    let hardware = Hardware::open(options.device)?;
    let mut warnings = target.tokenizer.warnings().to_vec();
    let template = ChatTemplate::from_gguf(&target.gguf, None)
        .map(Arc::new)
        .map_err(Arc::new);
    // That a model is not for conversations is nothing to warn of.
    if let Err(error) = &template
        && !matches!(**error, TemplateError::Missing)
    {
        warnings.push(format!(
            "chat messages are refused, and plain text is not: {error}"
        ));
    }

    let trained = target.config.context_length;
    let context_length = options.context_length.unwrap_or(trained);
    if context_length > trained {
        warnings.push(format!(
            "context_length {context_length} is beyond the {trained} tokens that the target was trained for; text may degrade there"
        ));
    }
    warnings.extend(target.unread("target"));
    if let Some(draft) = &draft {
        warnings.extend(draft.unread("draft"));
        if let Some(difference) = target.tokenizer.first_difference(&draft.tokenizer) {
            return Err(LoadError::Vocabulary(difference));
        }
        let ratio = target.gguf.parameters() as f64 / draft.gguf.parameters().max(1) as f64;
        if !USUAL_RATIO.contains(&ratio) {
            warnings.push(format!(
                "the target has {ratio:.1} times the draft's parameters ({:.1} M to {:.1} M); 15 to 25 times tends to pay",
                target.gguf.parameters() as f64 / 1e6,
                draft.gguf.parameters() as f64 / 1e6,
            ));
        }
        let reached = draft.config.context_length;
        if reached < context_length {
            warnings.push(format!(
                "the draft \"{}\" was trained for {reached} tokens and the context has {context_length}: beyond {reached} it does \
                 not draft, lookup goes on; lower context_length, or choose a draft that reaches as far",
                draft.summary().name
            ));
        }
    }

    let headers = || std::iter::once(&target).chain(&draft);
    let adapters = || adapter.iter();
    let weights = headers().map(ModelFile::weight_bytes).sum::<u64>()
        + adapters().map(ExitFile::weight_bytes).sum::<u64>();
    let shapes = headers().map(|header| header.config.cache_shape());
    let position: u64 = shapes
        .chain(adapters().map(|adapter| adapter.cache_shape()))
        .map(|shape| hardware.cache_bytes_per_position(shape))
        .sum();
    let cache = position.saturating_mul(context_length as u64);
    let needed = weights.saturating_add(cache);
    if needed > options.budget {
        return Err(LoadError::Budget {
            needed,
            weights,
            cache,
            context_length,
            budget: options.budget,
        });
    }
    let report = PairReport {
        target: target.summary(),
        draft: match &adapter {
            Some(adapter) => Some(adapter.summary()),
            None => draft.as_ref().map(ModelFile::summary),
        },
        exit_layer,
        context_length,
        footprint: needed,
        warnings,
        backend: hardware.name(),
        batch_invariant: hardware.batch_invariant(),
    };
    Ok(Inspected {
        target,
        draft,
        adapter,
        template,
        hardware,
        report,
    })
}

impl ModelPair {
    /// Checks a pair by its headers: formats, shapes, vocabularies, ratio, and footprint against the budget.
    ///
    /// # Errors
    /// Says which file is wrong and how, or by how much the pair exceeds the budget.
    pub fn inspect(files: &PairFiles, options: &LoadOptions) -> Result<PairReport, LoadError> {
        inspect(files, options).map(|inspected| inspected.report)
    }

    /// Checks a pair, then maps or reads its weights.
    ///
    /// # Errors
    /// As [`Self::inspect`], and where reading fails half-way.
    pub fn load(
        files: &PairFiles,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Self, LoadError> {
        let Inspected {
            target,
            draft,
            adapter,
            template,
            hardware,
            mut report,
        } = inspect(files, options)?;
        let context_length = report.context_length;
        let tokenizer = Arc::clone(&target.tokenizer);
        let mut drafter = match draft {
            Some(header) => {
                let tokens = target.config.vocabulary;
                Some(draft::model(
                    header,
                    options,
                    tokens,
                    &mut report,
                    progress,
                )?)
            }
            None => None,
        };
        let loaded = target.load("target", hardware, options.model(context_length), progress)?;
        report.warnings.extend(loaded.warning);
        report.target = loaded.summary;
        let mut target = loaded.model;
        let exit = match adapter {
            Some(adapter) => Some(adapter.attach(&mut *target, progress)?),
            None => exit::layer(files, &mut *target, &tokenizer, &mut report)?,
        };
        if let Some(exit) = exit {
            drafter = Some(draft::own(&*target, exit, files.target.clone())?);
        }
        let parts = PairParts {
            target,
            target_bytes: report.target.weight_bytes,
            target_mapped_bytes: report.target.mapped_bytes,
            drafter,
            tokenizer,
            context_length,
        };
        Ok(Self {
            parts,
            template,
            report,
        })
    }

    /// The tokenizer of both models.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.parts.tokenizer
    }

    /// The target's chat template, without a clock.
    ///
    /// # Errors
    /// Where its file has no usable one: why.
    pub fn template(&self) -> Result<&Arc<ChatTemplate>, &Arc<TemplateError>> {
        self.template.as_ref()
    }

    /// What the headers said, and where the weights came from.
    #[must_use]
    pub fn report(&self) -> &PairReport {
        &self.report
    }

    pub(crate) fn into_parts(self) -> PairParts {
        self.parts
    }
}
