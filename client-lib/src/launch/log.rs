//! The log file of a daemon in the background.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tandem_proto::paths::Paths;

use super::LaunchError;

/// A longer log is set aside when a daemon starts, so that it does not grow for ever.
const MAX_LOG_BYTES: u64 = 8 << 20;
const MAX_TAIL_BYTES: u64 = 4096;
const MAX_TAIL_LINES: usize = 20;

/// The log, and where this daemon's part of it begins.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    begin: u64,
}

impl LogFile {
    pub(super) fn open(paths: &Paths) -> Result<Self, LaunchError> {
        let path = paths.log_file();
        let failed = |source| LaunchError::Log {
            path: path.clone(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&paths.log_dir)
            .map_err(failed)?;
        if path.metadata().is_ok_and(|log| log.len() > MAX_LOG_BYTES) {
            fs::rename(&path, path.with_extension("log.old")).map_err(failed)?;
        }
        // Prompts do not go to the log, but names of files may.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let begin = file.metadata().map_err(failed)?.len();
        Ok(Self { path, file, begin })
    }

    /// Returns the log twice, for standard output and standard error.
    pub(super) fn handles(&self) -> Result<(File, File), LaunchError> {
        let copy = || {
            self.file.try_clone().map_err(|source| LaunchError::Log {
                path: self.path.clone(),
                source,
            })
        };
        Ok((copy()?, copy()?))
    }

    /// Returns the last lines that this daemon wrote.
    pub(super) fn tail(&self) -> String {
        // The log only explains an error; not being able to read it must not hide that error.
        self.read_tail().unwrap_or_default()
    }

    fn read_tail(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            self.begin.max(end.saturating_sub(MAX_TAIL_BYTES)),
        ))?;
        let mut bytes = Vec::new();
        file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        Ok(lines[lines.len().saturating_sub(MAX_TAIL_LINES)..].join("\n"))
    }
}

/// Words the end of a log for an error message.
pub(super) fn quote(path: &Path, tail: &str) -> String {
    if tail.is_empty() {
        return format!("; it wrote nothing to its log `{}`", path.display());
    }
    format!("; its log `{}` ends with:\n{tail}", path.display())
}
