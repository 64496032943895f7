//! Standard error as a file that does not grow for ever: a daemon runs for months.
//!
//! Where standard error is our log file, the file is set aside when it is long, and a new one takes its place, also as
//! standard error, so that what libraries write goes there too. Whoever started the daemon does not matter: a client and
//! launchd have it write to the same file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
#[cfg(test)]
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::platform;

/// A longer log is set aside, as `tandemd.log.old`, in place of the one before: both together take twice as much.
const MAX_LOG_BYTES: u64 = 8 << 20;

/// Where lines go.
pub(super) struct Destination {
    /// None where it cannot be written to.
    output: Option<File>,
    log: Option<Log>,
}

/// The file that is ours to set aside.
struct Log {
    path: PathBuf,
    longest: u64,
    /// Makes the file take the place of standard error.
    redirect: fn(&File),
}

impl Destination {
    /// Writes to standard error, which may be the log file at `own`.
    pub(super) fn standard_error(own: Option<PathBuf>) -> Self {
        let output = io::stderr().as_fd().try_clone_to_owned().ok();
        let mut destination = Self {
            output: output.map(File::from),
            log: None,
        };
        destination.log = own.filter(|path| destination.is(path)).map(|path| Log {
            path,
            longest: MAX_LOG_BYTES,
            redirect: platform::redirect_output,
        });
        destination
    }

    /// Writes there, whatever it is.
    #[cfg(test)]
    pub(super) fn to(output: OwnedFd) -> Self {
        Self {
            output: Some(output.into()),
            log: None,
        }
    }

    /// Writes a line, or does not.
    pub(super) fn write(&mut self, line: &[u8]) {
        if !self.has_room() {
            return;
        }
        if let Some(output) = &mut self.output {
            let _lost = output.write_all(line);
        }
    }

    /// Sees to it that the log is where people look for it and not too long; says whether a line may be added.
    fn has_room(&mut self) -> bool {
        let Some(log) = &self.log else { return true };
        let length = self.output.as_ref().and_then(|file| file.metadata().ok());
        let length = length.map_or(0, |meta| meta.len());
        let in_place = self.is(&log.path);
        if in_place && length <= log.longest {
            return true;
        }
        if in_place && fs::rename(&log.path, log.path.with_extension("log.old")).is_err() {
            // What cannot be set aside is cut: better than a disk that it fills.
            let cut = self.output.as_ref().map(|file| file.set_len(0));
            return cut.is_some_and(|cut| cut.is_ok());
        }
        match open(&log.path) {
            Ok(file) => {
                (log.redirect)(&file);
                self.output = Some(file);
                true
            }
            // The old one goes on for a while, but not for ever.
            Err(_) => length <= 2 * log.longest,
        }
    }

    /// Whether this is the file at `path`.
    fn is(&self, path: &Path) -> bool {
        let identity = |meta: Metadata| meta.is_file().then(|| (meta.dev(), meta.ino()));
        let ours = self.output.as_ref().and_then(|file| file.metadata().ok());
        let ours = ours.and_then(identity);
        ours.is_some() && ours == fs::metadata(path).ok().and_then(identity)
    }
}

/// Prompts do not go to the log, but names of files may.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(directory: &Path) -> Destination {
        let path = directory.join("x.log");
        Destination {
            output: Some(open(&path).unwrap()),
            log: Some(Log {
                path,
                longest: 1000,
                redirect: |_| {},
            }),
        }
    }

    fn length(path: PathBuf) -> u64 {
        fs::metadata(path).map_or(0, |meta| meta.len())
    }

    #[test]
    fn a_log_of_any_length_takes_bounded_room() {
        let directory = tempfile::tempdir().unwrap();
        let (path, old) = (
            directory.path().join("x.log"),
            directory.path().join("x.log.old"),
        );
        let mut destination = log(directory.path());
        for _ in 0..1000 {
            destination.write(&[b'x'; 100]);
            assert!(length(path.clone()) <= 1100 && length(old.clone()) <= 1100);
        }
        assert!(length(old) > 1000, "what came before is there for a while");
        // Whoever makes it long.
        fs::write(&path, vec![b'y'; 50_000]).unwrap();
        destination.write(b"next");
        assert_eq!(fs::read(&path).unwrap(), b"next");
    }

    #[test]
    fn a_log_that_cannot_be_set_aside_is_cut() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("x.log.old/in the way")).unwrap();
        let mut destination = log(directory.path());
        for _ in 0..1000 {
            destination.write(&[b'x'; 100]);
            assert!(length(directory.path().join("x.log")) <= 1100);
        }
    }

    #[test]
    fn a_log_that_was_removed_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.log");
        let mut destination = log(directory.path());
        destination.write(b"one\n");
        fs::remove_file(&path).unwrap();
        destination.write(b"two\n");
        assert_eq!(fs::read(&path).unwrap(), b"two\n");
    }

    #[test]
    fn where_no_new_log_can_be_made_the_old_one_ends() {
        let directory = tempfile::tempdir().unwrap();
        let mut destination = log(directory.path());
        destination.write(b"one\n");
        fs::remove_dir_all(directory.path()).unwrap();
        for _ in 0..100 {
            destination.write(&[b'x'; 100]);
        }
        let length = destination.output.unwrap().metadata().unwrap().len();
        assert!(length <= 2100, "{length}");
    }
}
