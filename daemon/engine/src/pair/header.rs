//! One model file of a pair: its header and what follows from it.

use std::path::Path;
use std::sync::Arc;

use super::prepare::prepare;
use super::{LoadError, LoadOptions, LoadProgress, LoadStage, ModelSummary, PairReport};
use crate::gguf::{Gguf, shown};
use crate::hardware::Hardware;
use crate::model::{LanguageModel, ModelConfig, ModelError, foreign};
use crate::tokenizer::Tokenizer;
use tandem_prepared::MappedWeights;

/// One file with all that its header says.
pub(super) struct Header {
    pub(super) gguf: Gguf,
    pub(super) config: ModelConfig,
    pub(super) tokenizer: Arc<Tokenizer>,
}

impl Header {
    pub(super) fn read(role: &'static str, path: &Path) -> Result<Self, LoadError> {
        let gguf = Gguf::open(path).map_err(|source| LoadError::File { role, source })?;
        let path = || path.to_owned();
        let config = ModelConfig::from_gguf(&gguf).map_err(|source| LoadError::Model {
            role,
            path: path(),
            source,
        })?;
        let tokenizer = Tokenizer::shared(&gguf).map_err(|source| LoadError::Tokenizer {
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
            tokenizer,
        })
    }

    /// A warning of what the file brings that belongs to no part of the format, where there is any.
    pub(super) fn unread(&self, role: &str) -> Option<String> {
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

    pub(super) fn weight_bytes(&self) -> u64 {
        self.gguf.tensors().iter().map(|tensor| tensor.bytes).sum()
    }

    pub(super) fn summary(&self) -> ModelSummary {
        let (architecture, vocabulary) = (&self.config.architecture, self.config.vocabulary);
        ModelSummary::of(&self.gguf, architecture, vocabulary)
    }

    /// Loads the weights, by way of a prepared file where the options say so, and enters into the report what came of
    /// that.
    pub(super) fn load(
        self,
        role: &'static str,
        hardware: Hardware,
        options: &LoadOptions,
        report: &mut PairReport,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Box<dyn LanguageModel>, LoadError> {
        let context_length = report.context_length;
        let mut tell = |stage, done_bytes, total_bytes| {
            progress(LoadProgress {
                role,
                stage,
                done_bytes,
                total_bytes,
            });
        };
        let prepared = prepare(&self, role, options, &mut tell)?;
        report.warnings.extend(prepared.warning);
        let summary = match role {
            "draft" => report.draft.as_mut(),
            _ => Some(&mut report.target),
        };
        if let (Some(summary), Some(image)) = (summary, &prepared.image) {
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
            .load(&self.gguf, prepared.image, context_length, &mut advance)
            .map_err(|source| LoadError::Model {
                role,
                path: self.gguf.path().to_owned(),
                source,
            })?;
        unchanged(role, &self.gguf)?;
        Ok(model)
    }
}

/// Refuses what was read of a file while somebody wrote to it: it may be of two models.
pub(super) fn unchanged(role: &'static str, gguf: &Gguf) -> Result<(), LoadError> {
    match gguf.is_unchanged() {
        true => Ok(()),
        false => Err(LoadError::Changed {
            role,
            path: gguf.path().to_owned(),
        }),
    }
}
