//! What can go wrong with prepared files.

use std::io;
use std::path::{Path, PathBuf};

/// Why weights could not be prepared; the caller can still do without.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused, such as for want of permission or space.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A part of the file could not be written.
    #[error("cannot write {bytes} bytes of prepared weights at offset {offset} of {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// How many.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The limit of the cache leaves too little room.
    #[error(
        "prepared weights need {needed_bytes} bytes, and the cache of {limit_bytes} bytes holds {used_bytes} that are in use; \
         raise engine.prepared_limit"
    )]
    NoRoom {
        /// What the new file takes.
        needed_bytes: u64,
        /// What the cache may hold.
        limit_bytes: u64,
        /// What running processes hold.
        used_bytes: u64,
    },
    /// The file is sound as far as anybody can tell, and the system does not map it: for want of address space, mostly.
    #[error("cannot map {bytes} bytes of {}: {source}", path.display())]
    Unmapped {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The model file was written to meanwhile.
    #[error("{} changed while its weights were prepared", path.display())]
    Changed {
        /// The model file.
        path: PathBuf,
    },
    /// What was just written does not read back.
    #[error("the file {} is damaged although it was just written: {damage}", path.display())]
    Unstable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
}

impl StoreError {
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
}

/// Why a prepared file is not used.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// It is to be made anew.
    Damaged(Damage),
    /// That would be in vain.
    Refused(StoreError),
}

impl From<Damage> for Unusable {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

/// What is wrong with a prepared file; it is then made anew.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file is something else.
    #[error("it is no file of prepared weights")]
    Foreign,
    /// Another version of Tandem wrote it.
    #[error("it is written in version {found} of the format, and this is version {expected}")]
    Version {
        /// As in the file.
        found: u32,
        /// As this build writes.
        expected: u32,
    },
    /// It is shorter or longer than it says.
    #[error("it has {found_bytes} bytes and should have {expected_bytes}")]
    Size {
        /// What is there.
        found_bytes: u64,
        /// What should be.
        expected_bytes: u64,
    },
    /// A checksum does not fit.
    #[error("the checksum of {what} is wrong")]
    Checksum {
        /// Which part.
        what: String,
    },
    /// It is sound and belongs to something else.
    #[error("its {what} is {found}, and {expected} was expected")]
    Key {
        /// Which part of the key.
        what: &'static str,
        /// As in the file.
        found: String,
        /// As asked for.
        expected: String,
    },
    /// The table contradicts itself.
    #[error("its table of tensors is wrong: {what}")]
    Table {
        /// How.
        what: String,
    },
    /// It was mapped, and a part of it is gone.
    #[error("a part of it can no longer be read: it was cut short, or its disk fails")]
    Lost,
    /// It cannot be read.
    #[error("it cannot be read: {reason}")]
    Unreadable {
        /// What the system said.
        reason: String,
    },
}
