//! A target with its draft: checked by their headers before a weight is read, then loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::BackendError;
use crate::draft::{Drafter, ModelDrafter};
use crate::gguf::{Gguf, GgufError};
pub use crate::hardware::Device;
use crate::hardware::Hardware;
use crate::model::{LanguageModel, ModelConfig, ModelError};
use crate::template::ChatTemplate;
use crate::tokenizer::{Tokenizer, TokenizerError, VocabularyDifference};

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
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Most tokens of prompt and output together; `None`: what the target was trained for.
    pub context_length: Option<usize>,
    /// Bytes that the process may use.
    pub budget: u64,
    /// Most rows of one step.
    pub max_step_rows: usize,
    /// What to run on.
    pub device: Device,
}

/// What the headers say about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSummary {
    /// `general.name`, or the file's name.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// The format of most weights, such as `Q4_1`.
    pub quantization: String,
    /// Weights.
    pub parameters: u64,
    /// Bytes of the weights in the file.
    pub weight_bytes: u64,
    /// Tokens.
    pub vocabulary_size: usize,
}

/// What is known of a pair before its weights are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairReport {
    /// The target.
    pub target: ModelSummary,
    /// The draft, where the pair has one.
    pub draft: Option<ModelSummary>,
    /// Most tokens of prompt and output together.
    pub context_length: usize,
    /// Bytes of weights and of one full-length cache of each model.
    pub footprint: u64,
    /// Findings that do not prevent serving.
    pub warnings: Vec<String>,
    /// What it runs on, such as `cpu (candle)`.
    pub backend: &'static str,
    /// Whether a row's result is independent, to the bit, of its neighbours.
    pub batch_invariant: bool,
}

/// How far loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of weights read.
    pub loaded_bytes: u64,
    /// Bytes of weights in all.
    pub total_bytes: u64,
}

/// Why a pair cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read or is damaged.
    #[error("the {role} cannot be used: {source}")]
    File {
        /// `target` or `draft`.
        role: &'static str,
        /// What is wrong with it.
        source: GgufError,
    },
    /// A file is sound but not usable.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Model {
        /// `target` or `draft`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ModelError,
    },
    /// A tokenizer cannot be built.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Tokenizer {
        /// `target` or `draft`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenizerError,
    },
    /// The models do not speak the same tokens.
    #[error(
        "the draft's vocabulary is not the target's: {0}; choose a draft of the same model family"
    )]
    Vocabulary(VocabularyDifference),
    /// More memory than allowed.
    #[error(
        "the pair needs {needed} bytes ({weights} of weights, {cache} for one context of {context_length} tokens) and \
         the budget is {budget}; raise memory.budget, lower context_length, or choose a smaller model"
    )]
    Budget {
        /// Bytes in all.
        needed: u64,
        /// Bytes of weights.
        weights: u64,
        /// Bytes of caches.
        cache: u64,
        /// Tokens of context.
        context_length: usize,
        /// Bytes allowed.
        budget: u64,
    },
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] BackendError),
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

/// One file with all that its header says.
struct Header {
    gguf: Gguf,
    config: ModelConfig,
    tokenizer: Arc<Tokenizer>,
}

impl Header {
    fn read(role: &'static str, path: &Path) -> Result<Self, LoadError> {
        let gguf = Gguf::open(path).map_err(|source| LoadError::File { role, source })?;
        let path = || path.to_owned();
        let config = ModelConfig::from_gguf(&gguf).map_err(|source| LoadError::Model {
            role,
            path: path(),
            source,
        })?;
        let tokenizer = Tokenizer::from_gguf(&gguf).map_err(|source| LoadError::Tokenizer {
            role,
            path: path(),
            source,
        })?;
        if tokenizer.len() > config.vocabulary {
            let source = ModelError::Inconsistent(format!(
                "the tokenizer has {} tokens and the embedding {}",
                tokenizer.len(),
                config.vocabulary
            ));
            return Err(LoadError::Model {
                role,
                path: path(),
                source,
            });
        }
        Ok(Self {
            gguf,
            config,
            tokenizer: Arc::new(tokenizer),
        })
    }

    fn weight_bytes(&self) -> u64 {
        self.gguf.tensors().iter().map(|tensor| tensor.bytes).sum()
    }

    fn summary(&self) -> ModelSummary {
        let name = self
            .gguf
            .optional_str("general.name")
            .ok()
            .flatten()
            .map(str::to_owned);
        ModelSummary {
            name: name.unwrap_or_else(|| self.gguf.path().display().to_string()),
            architecture: self.config.architecture.clone(),
            quantization: self
                .gguf
                .dominant_format()
                .map_or_else(String::new, |format| format!("{format:?}")),
            parameters: self.gguf.parameters(),
            weight_bytes: self.weight_bytes(),
            vocabulary_size: self.config.vocabulary,
        }
    }

    fn load(
        self,
        role: &'static str,
        path: &Path,
        context_length: usize,
        hardware: Hardware,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Box<dyn LanguageModel>, LoadError> {
        hardware
            .load(&self.gguf, context_length, progress)
            .map_err(|source| LoadError::Model {
                role,
                path: path.to_owned(),
                source,
            })
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

    /// Checks a pair, then reads its weights.
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
            report,
        } = inspect(files, options)?;
        let total_bytes = report.target.weight_bytes
            + report.draft.as_ref().map_or(0, |draft| draft.weight_bytes);
        let mut loaded_bytes = 0;
        let mut advance = |bytes: u64| {
            loaded_bytes += bytes;
            progress(LoadProgress {
                loaded_bytes,
                total_bytes,
            });
        };
        let template = ChatTemplate::from_gguf(&target.gguf, None)
            .ok()
            .map(Arc::new);
        let context_length = report.context_length;
        let tokenizer = Arc::clone(&target.tokenizer);
        let target_bytes = report.target.weight_bytes;
        let drafter = match (draft, &files.draft, &report.draft) {
            (Some(draft), Some(path), Some(summary)) => {
                let model = draft.load(
                    "draft",
                    path,
                    context_length,
                    Hardware::open(options.device)?,
                    &mut advance,
                )?;
                let drafter = ModelDrafter::new(model, summary.weight_bytes, options.max_step_rows);
                Some(Box::new(drafter) as Box<dyn Drafter>)
            }
            _ => None,
        };
        let target = target.load(
            "target",
            &files.target,
            context_length,
            hardware,
            &mut advance,
        )?;
        let parts = PairParts {
            target,
            target_bytes,
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

    /// What the headers said.
    #[must_use]
    pub fn report(&self) -> &PairReport {
        &self.report
    }

    pub(crate) fn into_parts(self) -> PairParts {
        self.parts
    }
}
