//! One model file of a pair: its header and what follows from it.

use std::path::Path;
use std::sync::Arc;

use super::{LoadError, ModelSummary};
use crate::gguf::Gguf;
use crate::hardware::Hardware;
use crate::model::{LanguageModel, ModelConfig, ModelError};
use crate::tokenizer::Tokenizer;

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

    pub(super) fn weight_bytes(&self) -> u64 {
        self.gguf.tensors().iter().map(|tensor| tensor.bytes).sum()
    }

    pub(super) fn summary(&self) -> ModelSummary {
        let (architecture, vocabulary) = (&self.config.architecture, self.config.vocabulary);
        ModelSummary::of(&self.gguf, architecture, vocabulary)
    }

    pub(super) fn load(
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
