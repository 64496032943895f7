//! What a model reference means. Owns the grammar; knows neither the disk nor the network.
//!
//! The form of the text alone decides, never what happens to exist in the working directory:
//! 1. `bundled:NAME` is a model shipped inside Tandem;
//! 2. a text that starts with `/`, `./`, `../` or `~/`, or ends in `.gguf` and holds no `:`, is a
//!    local path;
//! 3. everything else is `org/repo[:file-or-quant][@revision]` on the Hugging Face hub.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Bundled, DEFAULT_TARGET, ModelError};

/// Names a model: a local file, a file of a hub repository, or one shipped inside Tandem.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ModelRef {
    /// A local GGUF file; a leading `~/` means the home directory.
    Path(PathBuf),
    /// A file of a repository on the Hugging Face hub.
    Hub(HubRef),
    /// A model shipped inside Tandem.
    Bundled(Bundled),
}

/// Names a GGUF file of a hub repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubRef {
    /// The repository as `org/name`.
    pub repo: String,
    /// Which of the repository's GGUF files is meant.
    pub pick: Pick,
    /// The branch, tag or commit; `None` means `main`.
    pub revision: Option<String>,
}

/// Says which GGUF file of a repository is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pick {
    /// Q4_K_M where there is one, else the only GGUF file.
    Default,
    /// The file of exactly this name, folders included.
    File(String),
    /// The only file whose name carries this quantization, such as `Q4_K_M`, in either case.
    Quant(String),
}

impl ModelRef {
    /// Returns the target of the default pair.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "the constant is a valid reference"
    )]
    pub fn default_target() -> Self {
        DEFAULT_TARGET
            .parse()
            .expect("the constant is a valid reference, which a test checks")
    }

    /// Returns the draft of the default pair.
    #[must_use]
    pub fn default_draft() -> Self {
        Self::Bundled(Bundled::SmolLm2Draft20m)
    }

    /// Returns the exit adapter of the default target.
    #[must_use]
    pub fn default_exit_adapter() -> Self {
        Self::Bundled(Bundled::SmolLm2Exit6)
    }
}

impl HubRef {
    /// Returns the revision, `main` where none was named.
    #[must_use]
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }
}

impl FromStr for ModelRef {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        if let Some(name) = text.strip_prefix("bundled:") {
            let bundled = Bundled::from_name(name);
            return bundled
                .map(Self::Bundled)
                .ok_or_else(|| syntax(text, "no such model is bundled"));
        }
        let rooted = ["/", "./", "../", "~/"]
            .iter()
            .any(|start| text.starts_with(start));
        if rooted || (is_gguf(text) && !text.contains(':')) {
            return Ok(Self::Path(PathBuf::from(text)));
        }
        parse_hub(text)
            .map(Self::Hub)
            .map_err(|reason| syntax(text, reason))
    }
}

fn syntax(text: &str, reason: &'static str) -> ModelError {
    ModelError::Syntax {
        text: text.to_owned(),
        reason,
    }
}

fn parse_hub(text: &str) -> Result<HubRef, &'static str> {
    let (rest, revision) = match text.rsplit_once('@') {
        Some((rest, revision)) => (rest, Some(revision)),
        None => (text, None),
    };
    let (repo, pick) = match rest.split_once(':') {
        Some((repo, pick)) => (repo, Some(pick)),
        None => (rest, None),
    };
    let (org, name) = repo
        .split_once('/')
        .ok_or("a hub repository is written org/repo")?;
    // `--` separates the two parts in the cache's folder names, so the hub forbids it inside them.
    if !is_plain(org) || !is_plain(name) || repo.contains("--") {
        return Err("org and repo are made of letters, digits, `-`, `_` and `.`");
    }
    if revision.is_some_and(|revision| !is_relative(revision)) {
        return Err("the revision after `@` is a branch, a tag or a commit");
    }
    let pick = match pick {
        None => Pick::Default,
        Some(file) if is_gguf(file) && is_relative(file) => Pick::File(file.to_owned()),
        Some(quant) if is_plain(quant) && !is_gguf(quant) => Pick::Quant(quant.to_owned()),
        Some(_) => {
            return Err(
                "after `:` comes a .gguf file of the repository or a quantization such as Q4_K_M",
            );
        }
    };
    Ok(HubRef {
        repo: repo.to_owned(),
        pick,
        revision: revision.map(str::to_owned),
    })
}

/// Whether `name` ends in `.gguf`, in either case.
pub(crate) fn is_gguf(name: &str) -> bool {
    name.len() > 5
        && name.is_char_boundary(name.len() - 5)
        && name[name.len() - 5..].eq_ignore_ascii_case(".gguf")
}

/// Whether `text` can be one component of a path or address without any escaping.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty()
        && !text.starts_with(['.', '-'])
        && !text.contains("..")
        && text.chars().all(plain)
}

/// Whether `path` is relative and stays below where it starts. Names from a server are checked by
/// this before use.
pub(crate) fn is_relative(path: &str) -> bool {
    let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
    path.split('/').all(inside) && !path.contains(['\\', '\0', '\n'])
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Hub(hub) => write!(f, "{hub}"),
            Self::Bundled(bundled) => write!(f, "bundled:{}", bundled.name()),
        }
    }
}

impl fmt::Display for HubRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repo)?;
        match &self.pick {
            Pick::Default => {}
            Pick::File(pick) | Pick::Quant(pick) => write!(f, ":{pick}")?,
        }
        self.revision
            .iter()
            .try_for_each(|revision| write!(f, "@{revision}"))
    }
}

impl TryFrom<String> for ModelRef {
    type Error = ModelError;

    fn try_from(text: String) -> Result<Self, ModelError> {
        text.parse()
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}
