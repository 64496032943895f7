//! What the daemon was told to do: read once, checked once, then carried as plain values.
//!
//! Owns the meaning and the defaults of every key. Must not know what a model file holds or what the machine has.

mod file;
mod residency;
mod speculation;
mod suggest;
mod units;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use tandem_models::ModelRef;

pub use file::DEFAULT_PAIR_NAME;
pub use residency::{Budget, KeepAlive, MemoryConfig, ResidencyConfig};
pub use speculation::{DraftConfig, SpeculationConfig};
pub use units::{InvalidDuration, InvalidSize, format_bytes, parse_duration, parse_size};

/// The largest config file that is read: a thousand pairs take a tenth of it.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Everything that can be configured, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file this came from; `None`: there is no file, and these are the built-in values.
    pub path: Option<PathBuf>,
    /// Name of the pair that serves requests without one; always a key of `pairs`.
    pub default_pair: String,
    /// What to keep resident, by name; at least one.
    pub pairs: BTreeMap<String, PairConfig>,
    /// How much is accepted at once, and how the daemon ends.
    pub server: ServerConfig,
    /// Most memory the daemon may use.
    pub memory: MemoryConfig,
    /// How models are computed.
    pub engine: EngineConfig,
    /// How much is drafted, and what is searched.
    pub speculation: SpeculationConfig,
}

/// One `[pairs.NAME]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct PairConfig {
    /// The model whose distribution the output follows.
    pub target: ModelRef,
    /// What drafts for it.
    pub draft: DraftConfig,
    /// Most tokens of prompt and output together; `None`: what the target was trained for.
    pub context_length: Option<usize>,
    /// Whether and how long it is in memory.
    pub residency: ResidencyConfig,
}

/// The `[server]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Requests of one pair that decode together.
    pub max_concurrent: usize,
    /// Requests of one pair that wait besides; the next one is refused.
    pub max_queue: usize,
    /// How long running streams may go on after the daemon was asked to end.
    pub drain: Duration,
    /// Largest message accepted and sent, in bytes.
    pub max_message_bytes: usize,
    /// How long the engine may take for one thing before it counts as hanging.
    pub hang_after: Duration,
}

/// The `[engine]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// Where models are computed.
    pub device: DeviceChoice,
    /// What draft models run on; `None`: the same.
    pub draft_device: Option<DeviceChoice>,
    /// Threads that compute on the CPU; `None`: one per performance core.
    pub threads: Option<NonZeroUsize>,
    /// Most rows (tokens of all requests) of one step; `None`: what suits the device.
    pub max_step_rows: Option<usize>,
    /// Most bytes that files of prepared weights may take; `None`: there are none, and each start packs the weights in
    /// memory.
    pub prepared_limit: Option<u64>,
}

/// Where models are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// The GPU this build supports, or else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// An Apple GPU; needs a build with the `metal` feature.
    Metal,
    /// An NVIDIA GPU; needs a build with the `cuda` feature.
    Cuda,
}

/// Why a config cannot be used; the daemon exits with code 78.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file exists but cannot be read, or was named and does not exist.
    #[error("cannot read the config file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML, has a key that means nothing, or a value of the wrong kind.
    #[error("{}:{line}: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line of the problem, from 1.
        line: usize,
        /// What is wrong and, for an unknown key, which one was probably meant.
        problem: String,
    },
    /// A value has the right kind but is not possible.
    #[error("{}: {key}: {problem}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Dotted key.
        key: String,
        /// What is wrong and what is possible.
        problem: String,
    },
}

/// Reads a file that is no longer than anybody writes: a device or a wrong file must not take the memory, nor a pipe that
/// nobody writes to the time.
pub(crate) fn read(path: &Path) -> std::io::Result<String> {
    let file = std::fs::File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.file_type().is_fifo() {
        return Err(std::io::Error::other("it is a pipe, and has to be a file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        let problem = format!("it has more than {MAX_FILE_BYTES} bytes, so it is something else");
        return Err(std::io::Error::other(problem));
    }
    Ok(text)
}

impl PairConfig {
    /// Returns the pair that Tandem comes with.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            target: ModelRef::default_target(),
            draft: DraftConfig::Model(ModelRef::default_draft()),
            context_length: None,
            residency: ResidencyConfig::default(),
        }
    }
}

impl Config {
    /// Returns the configuration without any file: the default pair and the default limits.
    ///
    /// # Panics
    /// Never: a test shows that the built-in values pass the checks.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse("", Path::new("built-in configuration"))
            .map(|config| Self {
                path: None,
                ..config
            })
            .expect("an empty file is valid, as a test shows")
    }

    /// Reads `path`. A file that does not exist gives the built-in configuration unless it is `required`, which it is
    /// when somebody named it.
    ///
    /// # Errors
    /// When the file cannot be read or holds anything that is not valid.
    pub fn load(path: &Path, required: bool) -> Result<Self, ConfigError> {
        match read(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => {
                Ok(Self::built_in())
            }
            Err(source) => Err(ConfigError::Read {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Returns the budget in bytes on this machine, which has so much memory, and whose GPU recommends to use so much.
    #[must_use]
    pub fn budget(&self, physical: u64, recommended: Option<u64>) -> u64 {
        self.memory.budget.bytes(physical, recommended)
    }

    /// Parses the text of the file at `path`; relative model paths start at its directory.
    ///
    /// # Errors
    /// When the text holds anything that is not valid.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        file::File::parse(text, path)?.check(path)
    }
}
