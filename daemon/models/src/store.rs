//! The store: finds models on this machine and fetches those that are missing.

use std::path::PathBuf;

use crate::cache::RepoCache;
use crate::options::expand_home;
use crate::pull::Pull;
use crate::{Bundled, ModelError, ModelRef, Progress, PullError, StoreOptions};

/// Finds models on this machine and fetches those that are missing.
#[derive(Debug, Clone)]
pub struct Store {
    options: StoreOptions,
}

impl Store {
    /// Makes a store of the folders and the hub that `options` name; nothing is read yet.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self { options }
    }

    /// Makes a store from the environment, as [`StoreOptions::from_env`] reads it.
    ///
    /// # Errors
    /// [`ModelError::NoHome`] where neither the home directory nor the place of the cache is known.
    pub fn from_env(models_dir: impl Into<PathBuf>) -> Result<Self, ModelError> {
        StoreOptions::from_env(models_dir).map(Self::new)
    }

    /// Returns the path of `model`, or `None` where it has to be pulled first; it never touches
    /// the network.
    ///
    /// A bundled model is written to Tandem's folder on first use, so it is always found. Of a hub
    /// repository only what was fetched is seen: without a file or quantization, that is Q4_K_M or
    /// the only GGUF file fetched.
    ///
    /// # Errors
    /// [`ModelError`] where the path is no file, several fetched files fit, or the disk refuses.
    pub fn locate(&self, model: &ModelRef) -> Result<Option<PathBuf>, ModelError> {
        match model {
            ModelRef::Path(path) => {
                let path = expand_home(path, self.options.home.as_deref())?;
                match path.metadata() {
                    Ok(meta) if meta.is_file() => Ok(Some(path)),
                    Ok(_) => Err(ModelError::NotAFile { path }),
                    Err(_) => Ok(None),
                }
            }
            ModelRef::Bundled(bundled) => self.install(*bundled).map(Some),
            ModelRef::Hub(hub) => Ok(RepoCache::new(&self.options.hub_cache, &hub.repo).find(hub)?),
        }
    }

    /// Makes sure that `model` lies on this machine and returns its path.
    ///
    /// A commit never changes, so what was fetched of one is not asked for again; a branch is, and
    /// what was fetched before still serves where the hub cannot be reached. An interrupted pull
    /// goes on where it ended. No file appears under its name before all its bytes are there and
    /// their SHA-256 is right.
    ///
    /// # Errors
    /// [`PullError::Failed`] names every source that was tried and what it said.
    pub fn pull(
        &self,
        model: &ModelRef,
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, PullError> {
        match model {
            ModelRef::Path(path) => {
                let missing = || PullError::NoSuchPath { path: path.clone() };
                self.locate(model)?.ok_or_else(missing)
            }
            ModelRef::Bundled(bundled) => Ok(self.install(*bundled)?),
            ModelRef::Hub(hub) => {
                let found = self.locate(model)?;
                Pull::new(&self.options, hub).run(found, progress)
            }
        }
    }

    fn install(&self, bundled: Bundled) -> Result<PathBuf, ModelError> {
        let folder = &self.options.models_dir;
        bundled.install(folder).map_err(|source| ModelError::Io {
            action: "install a bundled model in",
            path: folder.clone(),
            source,
        })
    }
}
