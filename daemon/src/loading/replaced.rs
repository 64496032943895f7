//! Whether a pair is what its files hold now: they may have been replaced behind their names, and names may have come to
//! mean other files.

use tandem_engine::pair::{DraftSource, PairReport};
use tandem_model::load::ModelSummary;
use tandem_prepared::{Store, StoreError, content_of};

use super::{LoadFailure, Loader};
use crate::residency::Recipe;

impl Loader {
    /// Returns the role of a file that is another one than when `loaded` was read. A file that was only copied or touched is
    /// not, where it is known what was loaded. It may have to read the file.
    ///
    /// # Errors
    /// Where a file is gone.
    pub(crate) fn replaced(
        &self,
        recipe: &Recipe,
        loaded: &PairReport,
    ) -> Result<Option<&'static str>, LoadFailure> {
        let target = self.target_alone(recipe)?.target;
        if !self.is_of(recipe, &loaded.target, &target)? {
            return Ok(Some("target"));
        }
        // Where the draft could not be used, nothing of it is loaded.
        let Some(draft) = &loaded.draft else {
            return Ok(None);
        };
        let (role, path) = match self.files(recipe)?.draft {
            DraftSource::Model(path) => ("draft", path),
            DraftSource::Adapter(path) => ("exit adapter", path),
            DraftSource::None | DraftSource::Layer(_) | DraftSource::MeasuredLayer => {
                return Ok(None);
            }
        };
        Ok((!self.is_of(recipe, draft, &path)?).then_some(role))
    }

    fn is_of(
        &self,
        recipe: &Recipe,
        loaded: &ModelSummary,
        path: &std::path::Path,
    ) -> Result<bool, LoadFailure> {
        let threads = recipe.engine.threads.unwrap_or(self.cores);
        let limit = recipe.engine.prepared_limit.unwrap_or_default();
        let store = Store::new(&self.prepared_dir, limit);
        let content = |path: &std::path::Path| -> Result<String, StoreError> {
            Ok(content_of(&store, path, threads)?.to_string())
        };
        let same = loaded.is_of(path, content);
        same.map_err(|_| LoadFailure::NoFile {
            path: path.to_owned(),
        })
    }
}
