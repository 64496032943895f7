//! What can go wrong, sorted by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::{ChoiceError, DEFAULT_DRAFT};

/// Says why a model reference is no use as it stands; the network was not asked.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The text is no model reference.
    #[error(
        "`{text}` is no model reference: {reason}; write the path of a GGUF file (./model.gguf), \
         org/repo[:file-or-quant][@revision] for the Hugging Face hub, or {DEFAULT_DRAFT}"
    )]
    Syntax {
        /// The text.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The path leads to something that is no regular file.
    #[error("{} is no file; name the GGUF file itself", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A path is given relative to a home directory that is not known.
    #[error("the home directory is unknown; set HOME, or HF_HUB_CACHE to where models are kept")]
    NoHome,
    /// Several files on disk fit the reference.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The disk refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Says why a model could not be fetched, naming every source that was tried.
#[derive(Debug, Error)]
pub enum PullError {
    /// Nothing was tried: the reference cannot be pulled.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A local path is named and nothing lies there.
    #[error("there is no file {}; a local model cannot be pulled", .path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// Every source failed.
    #[error("cannot pull {model}:{}", lines(.attempts))]
    Failed {
        /// The reference in its own words.
        model: String,
        /// The sources in the order of their trial; never empty.
        attempts: Vec<Attempt>,
    },
}

/// One source that was tried for a model, and what it said.
#[derive(Debug)]
pub struct Attempt {
    /// The source in words, such as `Hugging Face hub (https://huggingface.co)`.
    pub source: String,
    /// What it said.
    pub error: FetchError,
}

fn later(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(
        || "later".to_owned(),
        |pause| format!("in {} s", pause.as_secs()),
    )
}

fn lines(attempts: &[Attempt]) -> String {
    attempts
        .iter()
        .map(|attempt| format!("\n  {}: {}", attempt.source, attempt.error))
        .collect()
}

/// Says why one source did not deliver.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// `HF_HUB_OFFLINE` forbids asking.
    #[error("not asked, since HF_HUB_OFFLINE is set")]
    Offline,
    /// The proxy that the environment names cannot be used.
    #[error(
        "the proxy `{proxy}` is no address that can be used; correct HTTPS_PROXY, or write \
         http://host:port or socks5h://host:port"
    )]
    BadProxy {
        /// The proxy, without user and password.
        proxy: String,
    },
    /// No connection came about, or it broke before an answer.
    #[error("cannot be reached: {reason}")]
    Unreachable {
        /// What the connection said.
        reason: String,
    },
    /// The repository, revision or file does not exist.
    #[error("{what} does not exist there (404)")]
    NotFound {
        /// What is missing, in words.
        what: String,
    },
    /// Access was refused.
    #[error(
        "access to {repo} was refused ({status}): it does not exist, is private, or asks for its \
         terms to be accepted; {}",
        if *.sent_token { "the token sent is not enough" } else { "check the name, or set HF_TOKEN" }
    )]
    Refused {
        /// The HTTP status, 401 or 403.
        status: u16,
        /// The repository.
        repo: String,
        /// Whether a token was sent.
        sent_token: bool,
    },
    /// The server answered with another error.
    #[error("answered with HTTP status {status}; try again {}", later(*.retry_after))]
    Status {
        /// The HTTP status.
        status: u16,
        /// When it asks to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server's answer is not that of a model hub.
    #[error("gave an answer that cannot be used: {what}")]
    BadAnswer {
        /// What is wrong with it.
        what: String,
    },
    /// The repository does not hold the one file that is meant.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The connection broke too often; what has arrived is kept for the next pull.
    #[error(
        "the connection broke after {done_bytes} of {total_bytes} bytes ({reason}); pull again to \
         go on from there"
    )]
    Interrupted {
        /// Bytes that have arrived.
        done_bytes: u64,
        /// Bytes of the whole file.
        total_bytes: u64,
        /// What the connection said.
        reason: String,
    },
    /// The bytes are not the expected ones; they were deleted.
    #[error("sent wrong data: the SHA-256 should be {expected} and is {actual}")]
    Checksum {
        /// The SHA-256 in hexadecimal that was promised.
        expected: String,
        /// That of what arrived.
        actual: String,
    },
    /// The disk cannot take the file.
    #[error(
        "the disk of {} is full: {needed_bytes} bytes are still needed and {available_bytes} are \
         free; free some and pull again", .path.display()
    )]
    DiskFull {
        /// The folder in question.
        path: PathBuf,
        /// Bytes that are still to be written.
        needed_bytes: u64,
        /// Bytes that are free.
        available_bytes: u64,
    },
    /// The disk refused.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// pip could not be run or failed.
    #[error("{reason}")]
    Pip {
        /// What pip, or the attempt to run it, said.
        reason: String,
    },
}

impl FetchError {
    /// Makes an [`FetchError::Io`] of what the system said about `path`.
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }

    /// Whether what was fetched earlier is the best there is: nobody could be asked, or whoever was asked did not say what there
    /// is. An answer that says it, and a fault of this machine, stand.
    pub(crate) fn leaves_the_kept_file(&self) -> bool {
        match self {
            Self::Offline
            | Self::BadProxy { .. }
            | Self::Unreachable { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Status { .. }
            | Self::BadAnswer { .. }
            | Self::Interrupted { .. } => true,
            Self::Choice(_)
            | Self::Checksum { .. }
            | Self::DiskFull { .. }
            | Self::Io { .. }
            | Self::Pip { .. } => false,
        }
    }

    /// Returns how long to wait where the same question may be answered a little later; `usual` where the server does not say. A
    /// server cannot make anybody wait for longer than `patience`.
    pub(crate) fn pause(&self, usual: Duration, patience: Duration) -> Option<Duration> {
        match self {
            Self::Unreachable { .. } | Self::Interrupted { .. } => Some(usual),
            Self::Status {
                status: 408 | 425 | 429 | 500..,
                retry_after,
            } => {
                let pause = retry_after.unwrap_or(usual).max(usual);
                Some(pause).filter(|pause| *pause <= patience)
            }
            _ => None,
        }
    }

    /// Whether this machine is at fault, so that another source would fail as well.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::Io { .. })
    }
}
