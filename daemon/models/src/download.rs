//! One file from the hub into the cache: resume, retry, verify.

use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::cache::RepoCache;
use crate::hub::{Hub, RemoteFile};
use crate::part::{Expected, Part};
use crate::{Event, FetchError, Progress, digest, lock};

/// Attempts in a row that bring not a single byte.
const MAX_FRUITLESS: u32 = 5;
/// Doubled with each of them.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// A file of a repository and where it goes.
pub(crate) struct Download<'a> {
    pub(crate) hub: &'a Hub<'a>,
    pub(crate) cache: &'a RepoCache,
    pub(crate) repo: &'a str,
    pub(crate) file: &'a str,
    pub(crate) remote: &'a RemoteFile,
    pub(crate) patience: Duration,
}

impl Download<'_> {
    /// Makes sure that the blob is there, whole and verified.
    pub(crate) fn run(&self, progress: &mut dyn Progress) -> Result<(), FetchError> {
        let RemoteFile {
            etag, size_bytes, ..
        } = self.remote;
        let _lock = lock::acquire(&self.cache.lock(etag), progress)?;
        let blob = self.cache.blob(etag);
        if has_size(&blob, *size_bytes) {
            // Fetched by another process in the meantime, or earlier for another revision.
            return Ok(());
        }
        let sha256 = digest::is_sha256(etag).then_some(etag.as_str());
        let expected = Expected {
            size_bytes: *size_bytes,
            sha256,
        };

        let part = Part::open(self.cache.part(etag))?;
        let resumed = part.len_bytes() > 0;
        match self.complete(part, progress)?.finish(&blob, expected) {
            // What an earlier pull left may be the wrong part, so that is no reason to give up.
            Err(reason @ (FetchError::Checksum { .. } | FetchError::BadAnswer { .. }))
                if resumed =>
            {
                progress.event(Event::Retrying { reason: &reason });
                let part = Part::open(self.cache.part(etag))?;
                self.complete(part, progress)?.finish(&blob, expected)?;
            }
            finished => finished?,
        }
        progress.event(Event::Finished);
        Ok(())
    }

    /// Reads until all bytes are there, through any number of broken connections as long as each
    /// brings some.
    fn complete(&self, mut part: Part, progress: &mut dyn Progress) -> Result<Part, FetchError> {
        let total_bytes = self.remote.size_bytes;
        if part.len_bytes() > total_bytes {
            part.reset()?;
        }
        part.check_space(total_bytes)?;
        let done_bytes = part.len_bytes();
        progress.event(Event::Started {
            file: self.file,
            total_bytes,
            done_bytes,
        });
        let mut fruitless = 0;
        while part.len_bytes() < total_bytes {
            let before = part.len_bytes();
            let Err(reason) = self.receive(&mut part, progress) else {
                continue;
            };
            fruitless = if part.len_bytes() > before {
                1
            } else {
                fruitless + 1
            };
            let usual = FIRST_PAUSE * 2_u32.pow(fruitless.min(8) - 1);
            let pause = reason.pause(usual, self.patience);
            let Some(pause) = pause.filter(|_| fruitless < MAX_FRUITLESS) else {
                return Err(reason);
            };
            progress.event(Event::Retrying { reason: &reason });
            thread::sleep(pause);
        }
        Ok(part)
    }

    /// Reads from where the part ends until the file or the connection does.
    fn receive(&self, part: &mut Part, progress: &mut dyn Progress) -> Result<(), FetchError> {
        let total_bytes = self.remote.size_bytes;
        let mut remainder = self
            .hub
            .read(self.repo, self.remote, self.file, part.len_bytes())?;
        if remainder.start_bytes != part.len_bytes() {
            part.reset()?;
        }
        let mut buffer = vec![0; 256 * 1024];
        while part.len_bytes() < total_bytes {
            let interrupted = |done_bytes, reason| FetchError::Interrupted {
                done_bytes,
                total_bytes,
                reason,
            };
            // Never more than was promised, whatever the server sends.
            let room = usize::try_from(total_bytes - part.len_bytes())
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            match remainder.reader.read(&mut buffer[..room]) {
                Ok(0) => return Err(interrupted(part.len_bytes(), "it ended early".to_owned())),
                Ok(read) => part.append(&buffer[..read], total_bytes)?,
                Err(error) => return Err(interrupted(part.len_bytes(), error.to_string())),
            }
            progress.event(Event::Advanced {
                done_bytes: part.len_bytes(),
            });
        }
        Ok(())
    }
}

/// Whether a file of `size_bytes` lies at `path`.
pub(crate) fn has_size(path: &Path, size_bytes: u64) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.len() == size_bytes)
}
