//! The hub's cache on disk. Owns its layout; knows nothing of the network.
//!
//! ```text
//! models--org--repo/refs/main                     the commit that `main` was, when last asked
//! models--org--repo/snapshots/COMMIT/model.gguf   a link to ../../blobs/ETAG
//! models--org--repo/blobs/ETAG                    the bytes; ETAG is their SHA-256 for large files
//! models--org--repo/blobs/ETAG.incomplete         the first bytes, while a download is under way
//! .locks/models--org--repo/ETAG.lock              held by whoever writes these
//! ```

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::reference::{HubRef, is_gguf};
use crate::select::{self, ChoiceError};

/// The part of the cache that belongs to one repository.
#[derive(Debug)]
pub(crate) struct RepoCache {
    root: PathBuf,
    locks: PathBuf,
}

impl RepoCache {
    pub(crate) fn new(hub_cache: &Path, repo: &str) -> Self {
        let folder = format!("models--{}", repo.replace('/', "--"));
        Self {
            root: hub_cache.join(&folder),
            locks: hub_cache.join(".locks").join(folder),
        }
    }

    pub(crate) fn blob(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(etag)
    }

    pub(crate) fn part(&self, etag: &str) -> PathBuf {
        self.root.join("blobs").join(format!("{etag}.incomplete"))
    }

    pub(crate) fn lock(&self, etag: &str) -> PathBuf {
        self.locks.join(format!("{etag}.lock"))
    }

    /// Finds the file that `wanted` means among those on disk.
    ///
    /// Only what was fetched can be seen here, so the default choice may be another than the
    /// repository's own.
    pub(crate) fn find(&self, wanted: &HubRef) -> Result<Option<PathBuf>, ChoiceError> {
        let revision = wanted.revision();
        let commit = fs::read_to_string(self.root.join("refs").join(revision));
        let snapshot = self.snapshot(commit.as_deref().unwrap_or(revision).trim());
        let mut files = Vec::new();
        list(&snapshot, "", &mut files);
        match select::choose(&wanted.repo, &wanted.pick, &files) {
            Ok(file) => Ok(Some(snapshot.join(file))),
            Err(error @ (ChoiceError::Ambiguous { .. } | ChoiceError::Split { .. })) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Makes the blob of `etag` appear as `file` of `commit`, and `revision` mean that commit.
    pub(crate) fn publish(
        &self,
        etag: &str,
        commit: &str,
        file: &str,
        revision: &str,
    ) -> io::Result<PathBuf> {
        let link = self.snapshot(commit).join(file);
        let up = "../".repeat(2 + file.matches('/').count());
        let blob = self.blob(etag);
        put(&link, |at| appear(&blob, &format!("{up}blobs/{etag}"), at))?;
        if revision != commit {
            put(&self.root.join("refs").join(revision), |at| {
                fs::write(at, commit)
            })?;
        }
        Ok(link)
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }
}

/// Makes `blob` appear at `at`: by a link, else by another name of the same file, else as a copy. Disks that know no links have the
/// other layout of `huggingface_hub`.
fn appear(blob: &Path, target: &str, at: &Path) -> io::Result<()> {
    match symlink(target, at) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::hard_link(blob, at)
            .or_else(|_| fs::copy(blob, at).map(drop))
            // What was tried first says more.
            .map_err(|_| error),
        done => done,
    }
}

/// Lets `make` create something beside `path` and moves it there in one step.
fn put(path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let made = tempfile::Builder::new()
        .prefix(".tandem-")
        .make_in(folder, |at| make(at))?;
    made.into_temp_path()
        .persist(path)
        .map_err(|failed| failed.error)
}

/// Collects the GGUF files below `folder` whose links lead somewhere, each with its path from
/// there.
fn list(folder: &Path, prefix: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (
            entry.path(),
            format!("{prefix}{}", entry.file_name().display()),
        );
        if path.is_dir() {
            list(&path, &format!("{name}/"), files);
        } else if path.is_file() && is_gguf(&name) {
            files.push(name);
        }
    }
    files.sort();
}
