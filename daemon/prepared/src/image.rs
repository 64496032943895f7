//! A prepared file in memory: mapped, checked to the last byte, and locked against eviction.
#![expect(unsafe_code, reason = "a file is mapped into memory")]

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::{File, FileTimes};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use memmap2::{Advice, Mmap};

use crate::align::checksum;
use crate::error::{Damage, StoreError, Unusable};
use crate::fault::Watch;
use crate::header::{self, Summary, TensorEntry, wrong_checksum};
use crate::key::Key;
use crate::share::share_out;

/// A mapped file of prepared weights; as bytes, it is the whole file. The pages are clean: the system can drop them,
/// and other processes that map the file share them.
#[derive(Debug)]
pub struct Image {
    /// Goes before the mapping.
    watch: Watch,
    map: Mmap,
    tensors: HashMap<String, TensorEntry>,
    summary: Summary,
    /// Holds the shared lock that says that the file is in use.
    file: File,
    /// When the file was last written to, as of when all of it was last checked.
    checked: Mutex<SystemTime>,
    /// Threads to check it with.
    threads: NonZeroUsize,
}

/// The mapped file of a model's prepared weights, for those who do not keep it.
#[derive(Clone, Debug)]
pub struct MappedWeights(Weak<Image>);

impl MappedWeights {
    /// The weights in this file.
    #[must_use]
    pub fn of(image: &Arc<Image>) -> Self {
        Self(Arc::downgrade(image))
    }

    /// Says whether they are what was mapped; those that nobody uses any more are.
    ///
    /// # Errors
    /// As [`Image::check`].
    pub fn check(&self) -> Result<(), Damage> {
        self.0.upgrade().map_or(Ok(()), |image| image.check())
    }
}

impl PartialEq for MappedWeights {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for MappedWeights {}

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
            Err(error) => return Err(unreadable(error).into()),
        };
        // Where a file system has no locks, the file may be evicted under us, which does no harm.
        let _ = file.lock_shared();
        let table = header::read(&file)?;
        table.summary.check(key)?;
        // SAFETY: nobody of ours writes to a file once it has its name: it comes to be by a rename, and goes by being
        // unlinked, which leaves the mapping as it is. Whoever changes it all the same changes numbers, which any bytes
        // are; `check` finds that out before something is made of them.
        let map = unsafe { Mmap::map(&file) }.map_err(|source| {
            Unusable::Refused(StoreError::Unmapped {
                path: path.to_owned(),
                bytes: file.metadata().map_or(0, |meta| meta.len()),
                source,
            })
        })?;
        let watch = Watch::of(&map);
        // On a cold start this has the disk ahead of the checksums. That it fails costs time only.
        let _ = map.advise(Advice::WillNeed);
        // When it was last used, for eviction; a read-only disk does not keep that. Not when it was written to, from which
        // others that have it mapped tell that they have to compare all of it again.
        let _ = file.set_times(FileTimes::new().set_accessed(SystemTime::now()));
        let checked = modified(&file)?;
        verify(&map, &table.tensors, threads, progress)?;
        if watch.is_lost() {
            return Err(Damage::Lost.into());
        }
        let tensors = table.tensors.into_iter();
        Ok(Some(Self {
            tensors: tensors.map(|entry| (entry.name.clone(), entry)).collect(),
            summary: table.summary,
            watch,
            map,
            file,
            checked: Mutex::new(checked),
            threads,
        }))
    }

    /// Says whether the file is what was mapped. Costs one call of the system; all of the file is compared again only
    /// where somebody wrote to it, or another process began to use it.
    ///
    /// What was computed with the weights since the last check means nothing where this fails.
    ///
    /// # Errors
    /// With what is wrong: the file was cut short or written to, or its disk fails.
    pub fn check(&self) -> Result<(), Damage> {
        if self.watch.is_lost() {
            return Err(Damage::Lost);
        }
        let meta = self.file.metadata().map_err(unreadable)?;
        if meta.len() != self.map.len() as u64 {
            return Err(Damage::Size {
                found_bytes: meta.len(),
                expected_bytes: self.map.len() as u64,
            });
        }
        let modified = meta.modified().map_err(unreadable)?;
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if *checked != modified {
            let tensors: Vec<TensorEntry> = self.tensors.values().cloned().collect();
            verify(&self.map, &tensors, self.threads, &mut |_, _| {})?;
            if self.watch.is_lost() {
                return Err(Damage::Lost);
            }
            *checked = modified;
        }
        Ok(())
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

fn modified(file: &File) -> Result<SystemTime, Damage> {
    let meta = file.metadata().map_err(unreadable)?;
    meta.modified().map_err(unreadable)
}

fn unreadable(error: std::io::Error) -> Damage {
    Damage::Unreadable {
        reason: error.to_string(),
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
