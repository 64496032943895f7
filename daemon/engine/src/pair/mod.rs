//! A target with its draft: checked by their headers before a weight is read, then loaded.

mod error;
mod header;
mod prepare;
mod report;

use std::path::PathBuf;
use std::sync::Arc;

use crate::draft::{Drafter, ModelDrafter};
use crate::hardware::Hardware;
use crate::model::LanguageModel;
use crate::template::ChatTemplate;
use crate::tokenizer::Tokenizer;

pub use crate::hardware::Device;
pub use error::LoadError;
use header::Header;
pub use prepare::PreparedOptions;
pub use report::{LoadProgress, LoadStage, ModelSummary, PairReport, WeightSource};

/// Parameters of the target per parameter of the draft that tend to pay.
const USUAL_RATIO: std::ops::RangeInclusive<f64> = 15.0..=25.0;

/// Where the weights lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// GGUF file of the target.
    pub target: PathBuf,
    /// GGUF file of the draft; `None`: plain decoding.
    pub draft: Option<PathBuf>,
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
    /// Where weights are kept as the CPU's kernels want them, to be mapped; `None`: each load packs them in memory.
    pub prepared: Option<PreparedOptions>,
}

/// A loaded target and its draft.
pub struct ModelPair {
    parts: PairParts,
    template: Option<Arc<ChatTemplate>>,
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
    target: Header,
    draft: Option<Header>,
    /// The target's.
    hardware: Hardware,
    report: PairReport,
}

fn inspect(files: &PairFiles, options: &LoadOptions) -> Result<Inspected, LoadError> {
    let target = Header::read("target", &files.target)?;
    let draft = files
        .draft
        .as_ref()
        .map(|path| Header::read("draft", path))
        .transpose()?;
    let hardware = Hardware::open(options.device)?;
    let mut warnings = Vec::new();

    let trained = target.config.context_length;
    let context_length = options.context_length.unwrap_or(trained);
    if context_length > trained {
        warnings.push(format!(
            "context_length {context_length} is beyond the {trained} tokens that the target was trained for; text may degrade there"
        ));
    }
    if let Some(draft) = &draft {
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
    }

    let headers = || std::iter::once(&target).chain(&draft);
    let weights = headers().map(Header::weight_bytes).sum::<u64>();
    let position: u64 = headers()
        .map(|header| hardware.cache_bytes_per_position(header.config.cache_shape()))
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
        draft: draft.as_ref().map(Header::summary),
        context_length,
        footprint: needed,
        warnings,
        backend: hardware.name(),
        batch_invariant: hardware.batch_invariant(),
    };
    Ok(Inspected {
        target,
        draft,
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
            hardware,
            mut report,
        } = inspect(files, options)?;
        let template = ChatTemplate::from_gguf(&target.gguf, None)
            .ok()
            .map(Arc::new);
        let context_length = report.context_length;
        let tokenizer = Arc::clone(&target.tokenizer);
        let drafter = match draft {
            Some(draft) => {
                let hardware = Hardware::open(options.device)?;
                let model = draft.load("draft", hardware, options, &mut report, progress)?;
                let summary = report.draft.as_ref();
                let bytes = summary.map_or(0, |summary| summary.weight_bytes);
                let mapped = summary.map_or(0, |summary| summary.mapped_bytes);
                let drafter = ModelDrafter::new(model, bytes, options.max_step_rows);
                Some(Box::new(drafter.with_mapped(mapped)) as Box<dyn Drafter>)
            }
            None => None,
        };
        let target = target.load("target", hardware, options, &mut report, progress)?;
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

    /// The target's chat template, where its file has a usable one.
    #[must_use]
    pub fn template(&self) -> Option<&Arc<ChatTemplate>> {
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
