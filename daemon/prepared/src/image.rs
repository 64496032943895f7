//! A prepared file in memory: mapped, checked to the last byte, and locked against eviction.
#![expect(unsafe_code, reason = "a file is mapped into memory")]

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::SystemTime;

use memmap2::{Advice, Mmap};

use crate::align::checksum;
use crate::error::{Damage, StoreError, Unusable};
use crate::header::{self, Summary, TensorEntry, wrong_checksum};
use crate::key::Key;
use crate::share::share_out;

/// A mapped file of prepared weights; as bytes, it is the whole file. The pages are clean: the system can drop them,
/// and other processes that map the file share them.
#[derive(Debug)]
pub struct Image {
    map: Mmap,
    tensors: HashMap<String, TensorEntry>,
    summary: Summary,
    /// Holds the shared lock that says that the file is in use.
    _file: File,
}

impl AsRef<[u8]> for Image {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Image {
    /// Maps the file and checks all of it, on `threads` threads; `None` where there is no file.
    pub(crate) fn open(
        path: &Path,
        key: &Key,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Self>, Unusable> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let reason = error.to_string();
                return Err(Damage::Unreadable { reason }.into());
            }
        };
        // Where a file system has no locks, the file may be evicted under us, which does no harm.
        let _ = file.lock_shared();
        let table = header::read(&file)?;
        table.summary.check(key)?;
        // SAFETY: nobody writes to a file once it has its name: it comes to be by a rename, and goes by being unlinked,
        // which leaves the mapping as it is. Whoever changes it all the same could change this process in other ways.
        let map = unsafe { Mmap::map(&file) }.map_err(|source| {
            Unusable::Refused(StoreError::Unmapped {
                path: path.to_owned(),
                bytes: file.metadata().map_or(0, |meta| meta.len()),
                source,
            })
        })?;
        // On a cold start this has the disk ahead of the checksums. That it fails costs time only.
        let _ = map.advise(Advice::WillNeed);
        verify(&map, &table.tensors, threads, progress)?;
        // When it was last used, for eviction; a read-only disk does not keep that.
        let _ = file.set_modified(SystemTime::now());
        let tensors = table.tensors.into_iter();
        Ok(Some(Self {
            map,
            tensors: tensors.map(|entry| (entry.name.clone(), entry)).collect(),
            summary: table.summary,
            _file: file,
        }))
    }

    /// The tensor of that name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorEntry> {
        self.tensors.get(name)
    }

    /// The data of a tensor.
    #[must_use]
    pub fn data(&self, entry: &TensorEntry) -> Option<&[u8]> {
        self.map.get(entry.range()?)
    }

    /// What the file is for.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Size of all tensors, in bytes.
    #[must_use]
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors.values().map(|entry| entry.bytes).sum()
    }
}

impl TensorEntry {
    /// Its place in the file, as positions in memory.
    #[must_use]
    pub fn range(&self) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(self.offset).ok()?;
        Some(start..start.checked_add(usize::try_from(self.bytes).ok()?)?)
    }
}

/// Compares every tensor with its checksum. This also brings the pages in, in the order in which they lie.
fn verify(
    map: &[u8],
    tensors: &[TensorEntry],
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(), Damage> {
    let total = map.len() as u64;
    let check = |at: usize| {
        let tensor = &tensors[at];
        let bytes = tensor.end().and_then(|end| {
            map.get(usize::try_from(tensor.offset).ok()?..usize::try_from(end).ok()?)
        });
        match bytes {
            Some(bytes) if checksum([bytes]) == tensor.checksum => Ok(bytes.len() as u64),
            _ => Err(wrong_checksum(&format!("the tensor `{}`", tensor.name))),
        }
    };
    share_out(threads, tensors.len(), check, &mut |done| {
        progress(done, total);
    })
}
