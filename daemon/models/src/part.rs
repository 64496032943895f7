//! A file that is still arriving: its bytes so far, their digest, and its way to the final name.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::{FetchError, digest};

/// What a complete file must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) size_bytes: u64,
    /// In hexadecimal; `None` where the source does not tell.
    pub(crate) sha256: Option<&'a str>,
}

/// A partial file, open for more; the caller holds the lock of its blob.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    hasher: Sha256,
    len_bytes: u64,
}

impl Part {
    /// Opens the partial file at `path`, creating it if need be, and reads what an earlier pull
    /// left in it.
    pub(crate) fn open(path: PathBuf) -> Result<Self, FetchError> {
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder).map_err(FetchError::io("create", folder))?;
        let file = File::options()
            .create(true)
            .read(true)
            .append(true)
            .open(&path);
        let file = file.map_err(FetchError::io("open", &path))?;
        let mut part = Self {
            path,
            file,
            hasher: Sha256::new(),
            len_bytes: 0,
        };
        part.absorb().map_err(FetchError::io("read", &part.path))?;
        Ok(part)
    }

    fn absorb(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match self.file.read(&mut buffer)? {
                0 => return Ok(()),
                read => {
                    self.hasher.update(&buffer[..read]);
                    self.len_bytes += read as u64;
                }
            }
        }
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Appends `bytes` of a file of `total_bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8], total_bytes: u64) -> Result<(), FetchError> {
        self.file
            .write_all(bytes)
            .map_err(|error| match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    full(&self.path, total_bytes - self.len_bytes.min(total_bytes))
                }
                _ => FetchError::io("write", &self.path)(error),
            })?;
        self.hasher.update(bytes);
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Starts afresh with no bytes.
    pub(crate) fn reset(&mut self) -> Result<(), FetchError> {
        self.file
            .set_len(0)
            .map_err(FetchError::io("empty", &self.path))?;
        self.hasher = Sha256::new();
        self.len_bytes = 0;
        Ok(())
    }

    /// Fails if what is missing of `total_bytes` does not fit on the disk.
    pub(crate) fn check_space(&self, total_bytes: u64) -> Result<(), FetchError> {
        let needed_bytes = total_bytes.saturating_sub(self.len_bytes);
        match available(&self.path) {
            Some(available_bytes) if available_bytes < needed_bytes => {
                Err(full(&self.path, needed_bytes))
            }
            _ => Ok(()),
        }
    }

    /// Gives the complete file its final name, or deletes it if it is not what was expected.
    pub(crate) fn finish(self, blob: &Path, expected: Expected<'_>) -> Result<(), FetchError> {
        let Self {
            path,
            file,
            hasher,
            len_bytes,
        } = self;
        let actual = digest::finish(hasher);
        let on_disk = file
            .metadata()
            .map_err(FetchError::io("read", &path))?
            .len();
        let wrong_hash = |sha256: &&str| !sha256.eq_ignore_ascii_case(&actual);
        let wrong = if on_disk != len_bytes {
            // Some network file systems grant a lock to everyone; then two writers append here.
            let what = format!("another program wrote to {} meanwhile", path.display());
            Some(FetchError::BadAnswer { what })
        } else if let Some(expected) = expected.sha256.filter(wrong_hash).map(str::to_owned) {
            Some(FetchError::Checksum { expected, actual })
        } else if len_bytes != expected.size_bytes {
            let what = format!(
                "{len_bytes} bytes where {} were promised",
                expected.size_bytes
            );
            Some(FetchError::BadAnswer { what })
        } else {
            None
        };
        if let Some(error) = wrong {
            fs::remove_file(&path).map_err(FetchError::io("delete", &path))?;
            return Err(error);
        }
        file.sync_all().map_err(FetchError::io("write", &path))?;
        fs::rename(&path, blob).map_err(FetchError::io("rename", &path))
    }
}

fn full(path: &Path, needed_bytes: u64) -> FetchError {
    let folder = path.parent().unwrap_or(path).to_owned();
    let available_bytes = available(path).unwrap_or(0);
    FetchError::DiskFull {
        path: folder,
        needed_bytes,
        available_bytes,
    }
}

/// Bytes that this user may still write to the disk of `path`.
fn available(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, blob) = (folder.path().join("part"), folder.path().join("blob"));
        let mut part = Part::open(path.clone()).unwrap();
        part.append(b"right", 5).unwrap();
        Part::open(path).unwrap().append(b"more", 9).unwrap();
        let expected = Expected {
            size_bytes: 5,
            sha256: None,
        };
        let error = part.finish(&blob, expected).unwrap_err();
        assert!(
            error.to_string().contains("another program wrote"),
            "{error}"
        );
        assert!(!blob.exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_with_numbers() {
        let file = File::options().append(true).open("/dev/full").unwrap();
        let path = PathBuf::from("/dev/full");
        let mut part = Part {
            path,
            file,
            hasher: Sha256::new(),
            len_bytes: 0,
        };
        let error = part.append(&[0; 10], 1000).unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::DiskFull {
                    needed_bytes: 1000,
                    ..
                }
            ),
            "{error}"
        );
    }
}
