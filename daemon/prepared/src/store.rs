//! The directory of prepared files.
//!
//! ```text
//! CONTENT-ISA-LAYOUT.prepared            a file; its modification time is when it was last used
//! CONTENT-ISA-LAYOUT.prepared.PID-N.part one that is being written, or was when its writer died
//! locks/                                 one for each file, held while it is made
//! stamps/                                what model files hold, by inode
//! ```

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Damage, StoreError};
use crate::header::{self, Summary};
use crate::key::Key;

pub(crate) const EXTENSION: &str = ".prepared";
pub(crate) const PART_EXTENSION: &str = ".part";

/// A directory of prepared files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
    pub(crate) limit_bytes: u64,
}

/// One file of the directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// What it is for, or why it says nothing. Its tensors are not read.
    pub summary: Result<Summary, Damage>,
    /// Its size on disk.
    pub bytes: u64,
    /// When it was last mapped, or made.
    pub last_used: SystemTime,
    /// Whether a process has it mapped.
    pub in_use: bool,
}

impl Entry {
    /// The name of the file without directory and ending.
    #[must_use]
    pub fn id(&self) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(EXTENSION).unwrap_or(&name).to_owned()
    }

    /// Whether a person means it by `name`: the model's name, its file's, or the beginning of the id.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let of_model = self.summary.as_ref().is_ok_and(|summary| {
            let source = Path::new(&summary.source);
            summary.model.eq_ignore_ascii_case(name)
                || summary.source == name
                || [source.file_name(), source.file_stem()].contains(&Some(name.as_ref()))
        });
        of_model || (name.len() >= 6 && self.id().starts_with(name))
    }
}

impl Store {
    /// A store in `directory`, which need not exist, of at most `limit_bytes` bytes.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>, limit_bytes: u64) -> Self {
        Self {
            directory: directory.into(),
            limit_bytes,
        }
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(key.file_name())
    }

    pub(crate) fn stamps(&self) -> PathBuf {
        self.directory.join("stamps")
    }

    fn locks(&self) -> PathBuf {
        self.directory.join("locks")
    }

    /// Waits until no other process or thread makes this file; `waiting` is called before a wait. The lock lasts as
    /// long as the result.
    pub(crate) fn lock(&self, key: &Key, waiting: &mut dyn FnMut()) -> Result<File, StoreError> {
        let locks = self.locks();
        make_directory(&locks).map_err(StoreError::io("create", &locks))?;
        let path = locks.join(key.file_name());
        let file = File::options().create(true).append(true).open(&path);
        let file = file.map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => waiting(),
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
        }
        file.lock().map_err(StoreError::io("lock", &path))?;
        Ok(file)
    }

    /// Lists the files, those used last first. Without a directory there are none.
    ///
    /// # Errors
    /// Where the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let mut entries: Vec<Entry> = self
            .names(EXTENSION)?
            .into_iter()
            .filter_map(|path| entry(path).ok())
            .collect();
        entries.sort_by(|a, b| (b.last_used, &b.path).cmp(&(a.last_used, &a.path)));
        Ok(entries)
    }

    /// Removes a file. A process that has it mapped keeps it until it ends.
    ///
    /// # Errors
    /// Where the system refuses; that it is gone already is none.
    pub fn remove(&self, entry: &Entry) -> Result<(), StoreError> {
        match fs::remove_file(&entry.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &entry.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The paths of files that end so.
    pub(crate) fn names(&self, ending: &str) -> Result<Vec<PathBuf>, StoreError> {
        let failed = |error| StoreError::io("read", &self.directory)(error);
        let directory = match fs::read_dir(&self.directory) {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut paths = Vec::new();
        for item in directory {
            let path = item.map_err(failed)?.path();
            if path.to_str().is_some_and(|path| path.ends_with(ending)) {
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

fn entry(path: PathBuf) -> io::Result<Entry> {
    let file = File::open(&path);
    let meta = match &file {
        Ok(file) => file.metadata()?,
        Err(_) => fs::symlink_metadata(&path)?,
    };
    let summary = match &file {
        Ok(file) => header::read(file).map(|table| table.summary),
        Err(error) => Err(Damage::Unreadable {
            reason: error.to_string(),
        }),
    };
    let in_use = file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
    Ok(Entry {
        path,
        summary,
        bytes: meta.len(),
        last_used: meta.accessed()?,
        in_use,
    })
}

/// Makes a directory for this user alone, where there is none.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Puts a small file in place, whole or not at all.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        make_directory(directory)?;
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(
        ".{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let part = PathBuf::from(part);
    let result = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path));
    if result.is_err() {
        let _ = fs::remove_file(&part);
    }
    result
}
