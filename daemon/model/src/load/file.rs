//! A model's file: its header and what follows from it.

use std::path::Path;
use std::sync::Arc;

use tandem_prepared::MappedWeights;

use super::prepare::prepare;
use super::{FileError, LoadProgress, LoadStage, ModelSummary, PreparedOptions};
use crate::gguf::{Gguf, shown};
use crate::hardware::{Device, Hardware};
use crate::model::{LanguageModel, ModelConfig, ModelError, foreign};
use crate::tokenizer::Tokenizer;

/// How to load a model.
#[derive(Clone, Copy, Debug)]
pub struct ModelOptions<'a> {
    /// What its weights are prepared for.
    pub device: Device,
    /// Where weights are kept as the CPU's kernels want them; `None`: they are packed in memory.
    pub prepared: Option<&'a PreparedOptions>,
    /// Most positions of a sequence.
    pub context_length: usize,
}

/// A model in memory.
pub struct LoadedModel {
    /// It.
    pub model: Box<dyn LanguageModel>,
    /// What its header said, and where its weights came from.
    pub summary: ModelSummary,
    /// What went wrong with prepared weights, where something did.
    pub warning: Option<String>,
}

impl std::fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedModel")
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

/// One file with all that its header says.
#[derive(Debug)]
pub struct ModelFile {
    /// The header.
    pub gguf: Gguf,
    /// What the header says of the computation.
    pub config: ModelConfig,
    /// What it says of tokens.
    pub tokenizer: Arc<Tokenizer>,
}

impl ModelFile {
    /// Reads the header; `role` is what errors call the model.
    ///
    /// # Errors
    /// A file that cannot be read, is damaged, contradicts itself or asks for what is not supported.
    pub fn read(role: &'static str, path: &Path) -> Result<Self, FileError> {
        let gguf = Gguf::open(path).map_err(|source| FileError::File { role, source })?;
        let path = || path.to_owned();
        let config = ModelConfig::from_gguf(&gguf).map_err(|source| FileError::Model {
            role,
            path: path(),
            source,
        })?;
        let tokenizer = Tokenizer::shared(&gguf).map_err(|source| FileError::Tokenizer {
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
            return Err(FileError::Model {
                role,
                path: path(),
                source,
            });
        }
        Ok(Self {
            gguf,
            config,
            tokenizer,
        })
    }

    /// A warning of what the file brings that belongs to no part of the format, where there is any.
    #[must_use]
    pub fn unread(&self, role: &str) -> Option<String> {
        let keys = foreign(&self.gguf, &self.config.architecture);
        let (first, others) = keys.split_first()?;
        let first = shown(first, 120).escape_debug().to_string();
        let more = match others.len() {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        Some(format!(
            "the {role}'s metadata has the key `{first}`{more}, which belongs to no part of the format and is not read"
        ))
    }

    /// Bytes of the weights in the file.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        weight_bytes(&self.gguf)
    }

    /// What the header says.
    #[must_use]
    pub fn summary(&self) -> ModelSummary {
        let (architecture, vocabulary) = (&self.config.architecture, self.config.vocabulary);
        ModelSummary::of(&self.gguf, architecture, vocabulary)
    }

    /// Loads the weights onto `hardware`, by way of a prepared file where the options say so.
    ///
    /// # Errors
    /// Where reading fails half-way, memory is short, or somebody writes to the file meanwhile.
    pub fn load(
        self,
        role: &'static str,
        hardware: Hardware,
        options: ModelOptions<'_>,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<LoadedModel, FileError> {
        let mut tell = |stage, done_bytes, total_bytes| {
            progress(LoadProgress {
                role,
                stage,
                done_bytes,
                total_bytes,
            });
        };
        let prepared = prepare(&self, role, options, &mut tell)?;
        let mut summary = self.summary();
        if let Some(image) = &prepared.image {
            summary.weights = prepared.source;
            summary.mapped_bytes = image.tensor_bytes();
            summary.mapped = Some(MappedWeights::of(image));
            summary.content = Some(image.summary().content.clone());
        }
        let (mut done_bytes, total_bytes) = (0, self.weight_bytes());
        let in_memory = prepared.image.is_none();
        let mut advance = |bytes| {
            done_bytes += bytes;
            if in_memory {
                tell(LoadStage::Reading, done_bytes, total_bytes);
            }
        };
        let model = hardware
            .load(
                &self.gguf,
                prepared.image,
                options.context_length,
                &mut advance,
            )
            .map_err(|source| FileError::Model {
                role,
                path: self.gguf.path().to_owned(),
                source,
            })?;
        unchanged(role, &self.gguf)?;
        Ok(LoadedModel {
            model,
            summary,
            warning: prepared.warning,
        })
    }
}

pub(super) fn weight_bytes(gguf: &Gguf) -> u64 {
    gguf.tensors().iter().map(|tensor| tensor.bytes).sum()
}

/// Refuses what was read of a file while somebody wrote to it: it may be of two models.
pub(super) fn unchanged(role: &'static str, gguf: &Gguf) -> Result<(), FileError> {
    match gguf.is_unchanged() {
        true => Ok(()),
        false => Err(FileError::Changed {
            role,
            path: gguf.path().to_owned(),
        }),
    }
}
