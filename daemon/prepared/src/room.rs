//! How much the directory may hold, and what goes when that is too little.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::StoreError;
use crate::store::{Entry, PART_EXTENSION, Store};

/// An unfinished file that nobody holds is left alone for so long: its writer may be between making and locking it.
const ABANDONED: Duration = Duration::from_secs(60);

impl Store {
    /// Removes files, the least recently used first, until `needed_bytes` more fit the limit. Files that a process has
    /// mapped stay: to remove one would free nothing now, and would have it made anew at the next start. `keep` stays
    /// as well.
    pub(crate) fn make_room(
        &self,
        needed_bytes: u64,
        keep: Option<&Path>,
    ) -> Result<(), StoreError> {
        let entries = self.list()?;
        let mut held: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let fits = |held: u64| held.saturating_add(needed_bytes) <= self.limit_bytes;
        for entry in entries.iter().rev() {
            if fits(held) {
                break;
            }
            if !entry.in_use && keep != Some(entry.path.as_path()) {
                self.remove(entry)?;
                held -= entry.bytes;
            }
        }
        if fits(held) {
            Ok(())
        } else {
            Err(StoreError::NoRoom {
                needed_bytes,
                limit_bytes: self.limit_bytes,
                used_bytes: held,
            })
        }
    }

    /// Removes what writers that died left behind.
    pub(crate) fn sweep(&self, now: SystemTime) {
        self.remove_parts(|modified| {
            now.duration_since(modified)
                .is_ok_and(|age| age >= ABANDONED)
        });
    }

    /// Removes everything that nobody is writing, and returns the prepared files there were.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn clear(&self) -> Result<Vec<Entry>, StoreError> {
        let entries = self.list()?;
        entries.iter().try_for_each(|entry| self.remove(entry))?;
        self.remove_parts(|_| true);
        let _ = fs::remove_dir_all(self.stamps());
        Ok(entries)
    }

    /// Removes what earlier writers of this file left behind when they died, so that a daemon that is killed again and again
    /// as it prepares does not fill the disk. The caller holds the file's lock, so that nobody is writing it.
    pub(crate) fn sweep_parts_of(&self, file: &Path) {
        let begins_so = |part: &Path| {
            let name = part.file_name().zip(file.file_name());
            name.is_some_and(|(part, file)| {
                let rest = part.as_bytes().strip_prefix(file.as_bytes());
                rest.is_some_and(|rest| rest.starts_with(b"."))
            })
        };
        for part in self.names(PART_EXTENSION).unwrap_or_default() {
            if begins_so(&part) {
                let _ = fs::remove_file(&part);
            }
        }
    }

    fn remove_parts(&self, is_old: impl Fn(SystemTime) -> bool) {
        for path in self.names(PART_EXTENSION).unwrap_or_default() {
            let Ok(file) = File::open(&path) else {
                continue;
            };
            let old = file.metadata().and_then(|meta| meta.modified());
            if old.is_ok_and(&is_old) && file.try_lock().is_ok() {
                let _ = fs::remove_file(&path);
            }
        }
    }
}
