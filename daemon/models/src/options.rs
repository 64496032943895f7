//! Where models are kept and how the hub is asked, read from the variables that `huggingface_hub`
//! reads.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{ModelError, proxy};

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
    /// The proxy that the hub is asked through.
    pub proxy: Option<String>,
    /// Hosts that are asked directly all the same, with those below them.
    pub no_proxy: Vec<String>,
    /// Longest that a hub may make a pull wait before it is asked again; none at all: it is not asked again.
    pub patience: Duration,
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
    /// does. Their older names count too, as they do in `huggingface_hub`. `HTTPS_PROXY`, `ALL_PROXY`
    /// and `NO_PROXY` mean what they mean to curl.
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
                .map(|value| expand_home(&expand_variables(&value, set), home.as_deref()))
                .transpose()
        };
        let is_true = |name: &str| {
            let value = text(name).unwrap_or_default().to_ascii_lowercase();
            ["1", "true", "yes", "on"].contains(&value.as_str())
        };

        let hf_home = match (folder("HF_HOME")?, folder("XDG_CACHE_HOME")?, &home) {
            (Some(hf_home), _, _) => Some(hf_home),
            (None, Some(cache), _) => Some(cache.join("huggingface")),
            (None, None, Some(home)) => Some(home.join(".cache/huggingface")),
            (None, None, None) => None,
        };
        let token_file = folder("HF_TOKEN_PATH")?.or_else(|| Some(hf_home.as_ref()?.join("token")));
        let token = text("HF_TOKEN")
            .or_else(|| text("HUGGING_FACE_HUB_TOKEN"))
            .or_else(|| fs::read_to_string(token_file?).ok())
            .filter(|_| !is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN"));
        let hub_cache = match folder("HF_HUB_CACHE")? {
            None => folder("HUGGINGFACE_HUB_CACHE")?,
            found => found,
        };
        let hub_cache = hub_cache.or_else(|| Some(hf_home.as_ref()?.join("hub")));
        let endpoint = text("HF_ENDPOINT").unwrap_or_else(|| "https://huggingface.co".to_owned());
        // An empty one counts here: it takes a proxy away.
        let proxy_var = |name: &str| var(name)?.into_string().ok();
        let proxy = proxy::choose(&endpoint, proxy_var);
        Ok(Self {
            hub_cache: hub_cache.ok_or(ModelError::NoHome)?,
            models_dir,
            home,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: token
                .map(|token| token.trim().to_owned())
                // Nothing else can be sent, and no token has anything else in it.
                .filter(|token| {
                    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
                }),
            proxy,
            no_proxy: proxy::exceptions(proxy_var),
            patience: Duration::from_secs(60),
            offline: is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE"),
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

/// Replaces `$NAME` and `${NAME}` by what is set, as Python does with these variables: a service manager passes them on as they are
/// written.
fn expand_variables(value: &OsStr, set: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let Some(mut rest) = value.to_str() else {
        return PathBuf::from(value);
    };
    let mut path = OsString::new();
    while let Some(at) = rest.find('$') {
        path.push(&rest[..at]);
        let after = &rest[at + 1..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, length) = match after.strip_prefix('{').and_then(|it| it.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match set(name).filter(|_| !name.is_empty()) {
            Some(value) => path.push(value),
            // What is not set stays as it is written.
            None => path.push(&rest[at..at + 1 + length]),
        }
        rest = &after[length..];
    }
    path.push(rest);
    path.into()
}

/// Shows everything but the token and who uses the proxy.
impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("hub_cache", &self.hub_cache)
            .field("models_dir", &self.models_dir)
            .field("home", &self.home)
            .field("endpoint", &self.endpoint)
            .field("token", &self.token.as_ref().map(|_| "(hidden)"))
            .field("proxy", &self.proxy.as_deref().map(proxy::without_password))
            .field("no_proxy", &self.no_proxy)
            .field("patience", &self.patience)
            .field("offline", &self.offline)
            .field("python", &self.python)
            .finish()
    }
}
