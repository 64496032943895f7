//! One writer at a time for each blob, across programs: the lock file is the one that
//! `huggingface_hub` uses.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use crate::{Event, FetchError, Progress};

/// Waits for the lock at `path`; it is held until the returned file is dropped, or the process
/// ends.
pub(crate) fn acquire(path: &Path, progress: &mut dyn Progress) -> Result<File, FetchError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
    let file = File::options().create(true).append(true).open(path);
    let file = file.map_err(FetchError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => progress.event(Event::Waiting { lock: path }),
        Err(TryLockError::Error(error)) => return Err(FetchError::io("lock", path)(error)),
    }
    file.lock().map_err(FetchError::io("lock", path))?;
    Ok(file)
}
