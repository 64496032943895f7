//! Where models are kept and how the hub is asked, read from the variables that `huggingface_hub`
//! reads.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::ModelError;

/// Says where models are kept and how the hub is asked.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreOptions {
    /// The hub's cache, the folder that holds `models--org--repo`.
    pub hub_cache: PathBuf,
    /// Tandem's own folder for models, where bundled ones are installed.
    pub models_dir: PathBuf,
    /// What a leading `~/` of a path means.
    pub home: Option<PathBuf>,
    /// The address of the hub, without a slash at the end.
    pub endpoint: String,
    /// The token sent to the hub, and to no other host.
    pub token: Option<String>,
    /// Whether the hub is not to be asked at all.
    pub offline: bool,
    /// The Python whose pip is the second source of the default target.
    pub python: PathBuf,
}

impl StoreOptions {
    /// Reads the options from the environment of this process.
    ///
    /// `HF_HUB_CACHE` or `HF_HOME` say where the cache is, `HF_ENDPOINT` where the hub is,
    /// `HF_TOKEN` or the token file of `hf auth login` who asks, and `HF_HUB_OFFLINE` that nobody
    /// does.
    ///
    /// # Errors
    /// [`ModelError::NoHome`] where neither the home directory nor the place of the cache is known.
    pub fn from_env(models_dir: impl Into<PathBuf>) -> Result<Self, ModelError> {
        Self::from_vars(models_dir.into(), |name| env::var_os(name))
    }

    /// Reads the options from any set of variables; [`StoreOptions::from_env`] says which.
    ///
    /// # Errors
    /// As [`StoreOptions::from_env`].
    pub fn from_vars(
        models_dir: PathBuf,
        var: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ModelError> {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let text = |name: &str| set(name)?.into_string().ok();
        let home = set("HOME").map(PathBuf::from);
        let folder = |name: &str| {
            set(name)
                .map(|value| expand_home(Path::new(&value), home.as_deref()))
                .transpose()
        };

        let hf_home = match (folder("HF_HOME")?, folder("XDG_CACHE_HOME")?, &home) {
            (Some(hf_home), _, _) => Some(hf_home),
            (None, Some(cache), _) => Some(cache.join("huggingface")),
            (None, None, Some(home)) => Some(home.join(".cache/huggingface")),
            (None, None, None) => None,
        };
        let token_file = folder("HF_TOKEN_PATH")?.or_else(|| Some(hf_home.as_ref()?.join("token")));
        let token = text("HF_TOKEN").or_else(|| fs::read_to_string(token_file?).ok());
        let hub_cache = folder("HF_HUB_CACHE")?.or_else(|| Some(hf_home.as_ref()?.join("hub")));
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        let offline = text("HF_HUB_OFFLINE")
            .unwrap_or_default()
            .to_ascii_lowercase();
        Ok(Self {
            hub_cache: hub_cache.ok_or(ModelError::NoHome)?,
            models_dir,
            home,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: token
                .map(|token| token.trim().to_owned())
                .filter(|token| !token.is_empty()),
            offline: ["1", "true", "yes", "on"].contains(&offline.as_str()),
            python: PathBuf::from("python3"),
        })
    }
}

/// Replaces a leading `~/` by the home directory.
pub(crate) fn expand_home(path: &Path, home: Option<&Path>) -> Result<PathBuf, ModelError> {
    match path.strip_prefix("~") {
        Ok(rest) => home.map(|home| home.join(rest)).ok_or(ModelError::NoHome),
        Err(_) => Ok(path.to_owned()),
    }
}

/// Shows everything but the token.
impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("hub_cache", &self.hub_cache)
            .field("models_dir", &self.models_dir)
            .field("home", &self.home)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("offline", &self.offline)
            .field("python", &self.python)
            .finish()
    }
}
