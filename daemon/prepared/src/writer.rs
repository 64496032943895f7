//! Writes a prepared file: aside, tensor by tensor, by several threads; it gets its name when it is whole.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, getrlimit};

use crate::align::{ALIGNMENT, aligned, checksum};
use crate::error::StoreError;
use crate::header::{self, PREFIX, Summary, Table, TensorEntry};
use crate::store::PART_EXTENSION;

/// A prepared file that is being written. Dropped before it is finished, it leaves nothing.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Where it is written.
    part: PathBuf,
    /// Where it will be.
    path: PathBuf,
    summary: Summary,
    /// Most bytes that a file of this process may have: the system would end the process that goes beyond.
    file_limit: u64,
    tensors: Mutex<Vec<TensorEntry>>,
    finished: bool,
}

impl Writer {
    pub(crate) fn create(path: &Path, summary: Summary) -> Result<Self, StoreError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut part = path.as_os_str().to_owned();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        part.push(format!(".{}-{count}{PART_EXTENSION}", std::process::id()));
        let part = PathBuf::from(part);
        let file = File::options().write(true).create_new(true).open(&part);
        let writer = Self {
            file: file.map_err(StoreError::io("create", &part))?,
            part,
            path: path.to_owned(),
            summary,
            file_limit: getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX),
            tensors: Mutex::default(),
            finished: false,
        };
        // Tells others that somebody is still writing; without locks, they wait for the file to grow old.
        let _ = writer.file.try_lock();
        Ok(writer)
    }

    /// Appends a tensor. Any number of threads may do so at once.
    ///
    /// # Errors
    /// Where the disk is full or fails, or a limit of this process is reached.
    pub fn put(
        &self,
        name: &str,
        format: &str,
        shape: &[u64],
        data: &[u8],
    ) -> Result<(), StoreError> {
        const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
        let bytes = data.len() as u64;
        let padding = &ZEROS[..(bytes.next_multiple_of(ALIGNMENT) - bytes) as usize];
        let checksum = checksum([data, padding]);
        let (offset, end) = {
            let mut tensors = self.tensors.lock().unwrap_or_else(PoisonError::into_inner);
            let offset = tensors.last().map_or(Some(PREFIX), TensorEntry::end);
            let end = offset.and_then(|offset| aligned(offset.checked_add(bytes)?));
            let place = offset.zip(end);
            let place = place.ok_or_else(|| self.failed(0, bytes, too_large()))?;
            tensors.push(TensorEntry {
                name: name.to_owned(),
                format: format.to_owned(),
                shape: shape.to_vec(),
                offset: place.0,
                bytes,
                checksum,
            });
            place
        };
        self.write(offset, data)?;
        self.write(end - padding.len() as u64, padding)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), StoreError> {
        let bytes = data.len() as u64;
        if offset.saturating_add(bytes) > self.file_limit {
            return Err(self.failed(offset, bytes, too_large()));
        }
        self.file
            .write_all_at(data, offset)
            .map_err(|source| self.failed(offset, bytes, source))
    }

    fn failed(&self, offset: u64, bytes: u64, source: io::Error) -> StoreError {
        StoreError::Write {
            path: self.part.clone(),
            offset,
            bytes,
            source,
        }
    }

    /// Writes the table, brings everything to the disk, and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let tensors = std::mem::take(&mut self.tensors);
        let table = Table {
            summary: self.summary.clone(),
            tensors: tensors.into_inner().unwrap_or_else(PoisonError::into_inner),
        };
        let offset = table.tensors.last().map_or(Some(PREFIX), TensorEntry::end);
        let offset = offset.ok_or_else(|| self.failed(0, 0, too_large()))?;
        let json = serde_json::to_vec(&table)
            .map_err(|error| StoreError::io("describe", &self.part)(io::Error::other(error)))?;
        self.write(offset, &json)?;
        self.write(0, &header::prefix(offset, &json))?;
        self.file
            .sync_all()
            .map_err(StoreError::io("write to the disk", &self.part))?;
        fs::rename(&self.part, &self.path).map_err(StoreError::io("name", &self.part))?;
        self.finished = true;
        // Makes the name last; the file is good either way.
        if let Some(directory) = self.path.parent().and_then(|path| File::open(path).ok()) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn too_large() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}
