//! Every reason why a file does not load.

use std::path::PathBuf;

use tandem_prepared::StoreError;

use crate::gguf::GgufError;
use crate::model::ModelError;
use crate::tokenizer::TokenizerError;

/// Why a file cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read or is damaged.
    #[error("the {role} cannot be used: {source}")]
    File {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// What is wrong with it.
        source: GgufError,
    },
    /// A file is sound but not usable.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Model {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ModelError,
    },
    /// A tokenizer cannot be built.
    #[error("the {role} `{path}` cannot be used: {source}")]
    Tokenizer {
        /// `target` or `draft`.
        role: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TokenizerError,
    },
    /// Somebody wrote to a file that was being read.
    #[error(
        "the {role} `{path}` was written to while it was loaded; once it is whole, the next request or `tandem reload` \
         loads it"
    )]
    Changed {
        /// `target`, `draft` or `exit adapter`.
        role: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The system has no room for the prepared weights.
    #[error(
        "the {role} cannot be loaded: {source}; free memory, or raise the limits of the process"
    )]
    Unmapped {
        /// `target` or `draft`.
        role: &'static str,
        /// What it said.
        source: StoreError,
    },
}
