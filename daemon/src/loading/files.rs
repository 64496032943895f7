//! Where the files of a pair are.

use std::path::PathBuf;

use tandem_engine::pair::{DraftSource, PairFiles};
use tandem_models::ModelRef;

use super::{LoadFailure, Loader};
use crate::config::DraftConfig;
use crate::residency::Recipe;

impl Loader {
    /// Finds the target and what drafts for it.
    pub(super) fn files(&self, recipe: &Recipe) -> Result<PairFiles, LoadFailure> {
        Ok(PairFiles {
            draft: self.draft(&recipe.draft)?,
            ..self.target_alone(recipe)?
        })
    }

    /// Finds the target.
    pub(super) fn target_alone(&self, recipe: &Recipe) -> Result<PairFiles, LoadFailure> {
        Ok(PairFiles {
            target: self.locate(&recipe.target)?,
            draft: DraftSource::None,
        })
    }

    fn draft(&self, draft: &DraftConfig) -> Result<DraftSource, LoadFailure> {
        Ok(match draft {
            DraftConfig::None => DraftSource::None,
            DraftConfig::Model(model) => DraftSource::Model(self.locate(model)?),
            DraftConfig::Adapter(model) => DraftSource::Adapter(self.locate(model)?),
            DraftConfig::Layer(layers) => DraftSource::Layer(*layers),
            DraftConfig::MeasuredLayer => DraftSource::MeasuredLayer,
        })
    }

    fn locate(&self, model: &ModelRef) -> Result<PathBuf, LoadFailure> {
        match self.store.locate(model) {
            Ok(Some(path)) => Ok(path),
            Ok(None) => Err(match model {
                ModelRef::Path(path) => LoadFailure::NoFile { path: path.clone() },
                ModelRef::Hub(_) | ModelRef::Bundled(_) => LoadFailure::Missing {
                    model: model.clone(),
                },
            }),
            Err(source) => Err(LoadFailure::Locate {
                model: model.clone(),
                source: Box::new(source),
            }),
        }
    }
}
