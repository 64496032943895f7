//! The draft of a pair: loaded with its target, or apart from it to go back to an engine that shed it.

use std::path::PathBuf;

use tandem_model::hardware::Hardware;
use tandem_model::load::{ExitFile, FileError, LoadProgress, ModelFile, ModelSummary};
use tandem_model::model::{Exit, LanguageModel};

use super::{
    DraftSource, Inspected, LoadError, LoadOptions, ModelPair, PairFiles, PairReport, inspect,
};
use crate::draft::{Drafter, ModelDrafter, SelfDrafter};

/// A draft that was loaded apart from its target.
pub struct LoadedDraft {
    draft: Draft,
    summary: Option<ModelSummary>,
}

enum Draft {
    Model(Box<dyn Drafter>),
    /// Read when it is attached: it is small.
    Adapter {
        header: Box<ExitFile>,
        target: PathBuf,
    },
}

impl std::fmt::Debug for LoadedDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.draft {
            Draft::Model(_) => "LoadedDraft::Model",
            Draft::Adapter { .. } => "LoadedDraft::Adapter",
        })
    }
}

impl LoadedDraft {
    /// Whether it can only be attached while the target holds no sequence.
    pub(crate) fn needs_empty_caches(&self) -> bool {
        matches!(self.draft, Draft::Adapter { .. })
    }

    /// What its file says, and where its weights came from.
    #[must_use]
    pub fn summary(&self) -> Option<&ModelSummary> {
        self.summary.as_ref()
    }

    /// Makes a drafter for `target`.
    pub(crate) fn attach(
        self,
        target: &mut dyn LanguageModel,
    ) -> Result<Box<dyn Drafter>, LoadError> {
        match self.draft {
            Draft::Model(drafter) => Ok(drafter),
            Draft::Adapter {
                header,
                target: path,
            } => {
                let exit = header.attach(target, &mut |_| {})?;
                own(target, exit, path)
            }
        }
    }
}

/// A drafter by the exits of a target that was read from `path`.
pub(super) fn own(
    target: &dyn LanguageModel,
    exit: Exit,
    path: PathBuf,
) -> Result<Box<dyn Drafter>, LoadError> {
    match SelfDrafter::new(target, exit) {
        Ok(drafter) => Ok(Box::new(drafter)),
        Err(source) => Err(FileError::Model {
            role: "target",
            path,
            source,
        }
        .into()),
    }
}

/// A drafter by a model of its own.
pub(super) fn model(
    header: ModelFile,
    options: &LoadOptions,
    target_vocabulary: usize,
    report: &mut PairReport,
    progress: &mut dyn FnMut(LoadProgress),
) -> Result<Box<dyn Drafter>, LoadError> {
    let hardware = Hardware::open(options.draft_device.unwrap_or(options.device))?;
    let loaded = header.load(
        "draft",
        hardware,
        options.model(report.context_length),
        progress,
    )?;
    let (bytes, mapped) = (loaded.summary.weight_bytes, loaded.summary.mapped_bytes);
    report.warnings.extend(loaded.warning);
    report.draft = Some(loaded.summary);
    let drafter = ModelDrafter::new(loaded.model, bytes, options.max_step_rows);
    let drafter = drafter.for_vocabulary(target_vocabulary);
    Ok(Box::new(drafter.with_mapped(mapped)))
}

impl ModelPair {
    /// Loads only the draft of a pair, checked against its target as [`Self::inspect`] does. `None`: it has none that holds
    /// weights of its own.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_draft(
        files: &PairFiles,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Option<LoadedDraft>, LoadError> {
        if matches!(
            files.draft,
            DraftSource::None | DraftSource::Layer(_) | DraftSource::MeasuredLayer
        ) {
            return Ok(None);
        }
        let Inspected {
            target,
            draft,
            adapter,
            mut report,
            ..
        } = inspect(files, options)?;
        let tokens = target.config.vocabulary;
        let loaded = match (draft, adapter) {
            (Some(draft), _) => {
                let drafter = model(draft, options, tokens, &mut report, progress)?;
                Some(Draft::Model(drafter))
            }
            (None, Some(header)) => Some(Draft::Adapter {
                header: Box::new(header),
                target: files.target.clone(),
            }),
            (None, None) => None,
        };
        Ok(loaded.map(|draft| LoadedDraft {
            draft,
            summary: report.draft,
        }))
    }
}
