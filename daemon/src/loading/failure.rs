//! Every reason why a pair cannot be loaded.

use std::path::PathBuf;

use tandem_engine::pair::LoadError;
use tandem_model::load::FileError;
use tandem_models::{ModelError, ModelRef};

use crate::residency::TooLarge;

/// Why a pair cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadFailure {
    #[error("{model} is not on this machine; run `tandem pull {model}`")]
    Missing { model: ModelRef },
    #[error("{} does not exist", path.display())]
    NoFile { path: PathBuf },
    #[error("cannot look for {model}: {source}")]
    Locate {
        model: ModelRef,
        source: Box<ModelError>,
    },
    #[error(transparent)]
    Load(Box<LoadError>),
    #[error("the pair does not fit beside what is loaded: {0}")]
    Beside(TooLarge),
    #[error("reading the model files stopped on an internal error; the daemon's log has it")]
    Panic,
    #[error(
        "the limits of this process leave {room} bytes of address space, and {needed} are needed; raise them (`ulimit -v`, \
         `ulimit -d`) or choose a smaller model"
    )]
    Room { room: u64, needed: u64 },
    #[error(
        "the file of the {role} is another one than when the pair was loaded; `tandem reload` loads what it holds now"
    )]
    Replaced { role: &'static str },
    #[error("memory is short, and no pair is loaded until it is not")]
    Pressure,
}

impl LoadFailure {
    /// Whether it can be different next time without anybody's doing, or by that of someone who cannot tell the daemon.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Missing { .. }
            | Self::NoFile { .. }
            | Self::Beside(_)
            | Self::Room { .. }
            | Self::Pressure => true,
            Self::Load(error) => matches!(
                **error,
                LoadError::File(FileError::Unmapped { .. } | FileError::Changed { .. })
            ),
            Self::Locate { .. } | Self::Replaced { .. } | Self::Panic => false,
        }
    }
}

impl From<LoadError> for LoadFailure {
    fn from(error: LoadError) -> Self {
        Self::Load(Box::new(error))
    }
}
