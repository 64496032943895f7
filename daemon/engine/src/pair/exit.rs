//! How the target of a pair drafts for itself: an exit adapter's file, or a layer that is named or measured.

use std::path::{Path, PathBuf};

use super::header::unchanged;
use super::{DraftSource, LoadError, LoadProgress, LoadStage, ModelSummary, PairFiles, PairReport};
use crate::draft::choose_exit;
use crate::gguf::Gguf;
use crate::model::{Exit, ExitConfig, LanguageModel, ModelConfig, ModelError};
use crate::tokenizer::{SpecialTokens, Tokenizer};

const ROLE: &str = "exit adapter";

/// What layers are measured on: plain words of several kinds.
const TEXT: &str = "The old lighthouse stood at the edge of the cliff, and every evening the keeper climbed its stairs to \
    light the lamp. To sort a list of numbers in Python, call `numbers.sort()`. Water boils at 100 degrees Celsius at sea \
    level.";

/// An exit adapter's file, checked against its target.
pub(super) struct ExitHeader {
    gguf: Gguf,
    path: PathBuf,
    pub(super) config: ExitConfig,
    vocabulary: usize,
}

impl ExitHeader {
    pub(super) fn read(path: &Path, target: &ModelConfig) -> Result<Self, LoadError> {
        let gguf = Gguf::open(path).map_err(|source| LoadError::File { role: ROLE, source })?;
        let config =
            ExitConfig::from_gguf(&gguf, target).map_err(|source| unusable(path, source))?;
        Ok(Self {
            gguf,
            path: path.to_owned(),
            config,
            vocabulary: target.vocabulary,
        })
    }

    pub(super) fn weight_bytes(&self) -> u64 {
        self.gguf.tensors().iter().map(|tensor| tensor.bytes).sum()
    }

    pub(super) fn summary(&self) -> ModelSummary {
        ModelSummary::of(&self.gguf, &self.config.block.architecture, self.vocabulary)
    }

    /// Loads the adapter into its target.
    pub(super) fn attach(
        self,
        target: &mut dyn LanguageModel,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Exit, LoadError> {
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

fn unusable(path: &Path, source: ModelError) -> LoadError {
    LoadError::Model {
        role: ROLE,
        path: path.to_owned(),
        source,
    }
}

/// The exit without an adapter, where there is to be one; a measured one is entered into the report.
pub(super) fn layer(
    files: &PairFiles,
    target: &mut dyn LanguageModel,
    tokenizer: &Tokenizer,
    report: &mut PairReport,
) -> Result<Option<Exit>, LoadError> {
    match files.draft {
        DraftSource::Layer(layers) => Ok(Some(Exit::Layer(layers))),
        DraftSource::MeasuredLayer => {
            let mut text = tokenizer.encode(TEXT, SpecialTokens::AsText);
            text.truncate(report.context_length);
            let best = choose_exit(target, &text).map_err(|source| LoadError::Model {
                role: "target",
                path: files.target.clone(),
                source,
            })?;
            if let Exit::Layer(layers) = best.exit {
                report.exit_layer = Some(layers);
            }
            Ok(Some(best.exit))
        }
        DraftSource::None | DraftSource::Model(_) | DraftSource::Adapter(_) => Ok(None),
    }
}
