//! The file of an exit adapter, by which a model can be left early.

use std::path::{Path, PathBuf};

use super::file::{unchanged, weight_bytes};
use super::{FileError, LoadProgress, LoadStage, ModelSummary};
use crate::backend::CacheShape;
use crate::gguf::Gguf;
use crate::model::{Exit, ExitConfig, LanguageModel, ModelConfig, ModelError};

const ROLE: &str = "exit adapter";

/// An exit adapter's file, checked against the model that it is for.
#[derive(Debug)]
pub struct ExitFile {
    gguf: Gguf,
    path: PathBuf,
    config: ExitConfig,
    vocabulary: usize,
}

impl ExitFile {
    /// Reads the header, and compares it with what `target`'s says.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged, or that does not fit.
    pub fn read(path: &Path, target: &ModelConfig) -> Result<Self, FileError> {
        let gguf = Gguf::open(path).map_err(|source| FileError::File { role: ROLE, source })?;
        let config =
            ExitConfig::from_gguf(&gguf, target).map_err(|source| unusable(path, source))?;
        Ok(Self {
            gguf,
            path: path.to_owned(),
            config,
            vocabulary: target.vocabulary,
        })
    }

    /// Layers before the exit.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.config.layers
    }

    /// Of its one layer.
    #[must_use]
    pub fn cache_shape(&self) -> CacheShape {
        self.config.block.cache_shape()
    }

    /// Bytes of the weights in the file.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        weight_bytes(&self.gguf)
    }

    /// What the header says.
    #[must_use]
    pub fn summary(&self) -> ModelSummary {
        ModelSummary::of(&self.gguf, &self.config.block.architecture, self.vocabulary)
    }

    /// Loads the adapter into its target.
    ///
    /// # Errors
    /// Where reading fails half-way, or somebody writes to the file meanwhile.
    pub fn attach(
        self,
        target: &mut dyn LanguageModel,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Exit, FileError> {
        let (mut done_bytes, total_bytes) = (0, self.weight_bytes());
        let mut advance = |bytes| {
            done_bytes += bytes;
            progress(LoadProgress {
                role: ROLE,
                stage: LoadStage::Reading,
                done_bytes,
                total_bytes,
            });
        };
        target
            .attach_exit(&self.gguf, &mut advance)
            .map_err(|source| unusable(&self.path, source))?;
        unchanged(ROLE, &self.gguf)?;
        Ok(Exit::Adapter)
    }
}

fn unusable(path: &Path, source: ModelError) -> FileError {
    FileError::Model {
        role: ROLE,
        path: path.to_owned(),
        source,
    }
}
