//! The log file of a daemon in the background.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tandem_proto::paths::Paths;

use super::LaunchError;

const MAX_TAIL_BYTES: u64 = 4096;
const MAX_TAIL_LINES: usize = 20;
/// What systems let a pipe hold at most without being asked.
const MAX_PIPE_BYTES: u64 = 1 << 16;

/// Where a daemon writes what it logs, and where its part of that begins. The daemon itself keeps the file from growing.
#[derive(Debug)]
pub(super) enum LogFile {
    File {
        path: PathBuf,
        file: File,
        begin: u64,
    },
    /// The file cannot be written, such as on a full disk, which must not keep a daemon from serving. What it says first is
    /// kept here, and what it says later is lost.
    Memory {
        written: PipeReader,
        end: PipeWriter,
    },
}

impl LogFile {
    pub(super) fn open(paths: &Paths) -> Result<Self, LaunchError> {
        let opened = Self::open_file(paths);
        opened.or_else(|source| {
            let failed = |_| LaunchError::Log {
                path: paths.log_file(),
                source,
            };
            let (written, end) = io::pipe().map_err(failed)?;
            Ok(Self::Memory { written, end })
        })
    }

    fn open_file(paths: &Paths) -> io::Result<Self> {
        let path = paths.log_file();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&paths.log_dir)?;
        // Prompts do not go to the log, but names of files may.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&path)?;
        let begin = file.metadata()?.len();
        Ok(Self::File { path, file, begin })
    }

    /// Returns the log twice, for standard output and standard error.
    pub(super) fn handles(&self) -> Result<(Stdio, Stdio), LaunchError> {
        let handle = || -> io::Result<Stdio> {
            Ok(match self {
                Self::File { file, .. } => file.try_clone()?.into(),
                Self::Memory { end, .. } => end.try_clone()?.into(),
            })
        };
        let failed = |source| LaunchError::Log {
            path: PathBuf::from("a pipe"),
            source,
        };
        Ok((handle().map_err(failed)?, handle().map_err(failed)?))
    }

    /// Returns the last lines that this daemon wrote.
    pub(super) fn tail(&self) -> String {
        // The log only explains an error; not being able to read it must not hide that error.
        self.read_tail().unwrap_or_default()
    }

    fn read_tail(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        match self {
            Self::File { path, begin, .. } => {
                let mut file = File::open(path)?;
                let end = file.metadata()?.len();
                // The daemon has begun a new one where it is shorter than it was.
                let begin = if *begin > end { 0 } else { *begin };
                file.seek(SeekFrom::Start(
                    begin.max(end.saturating_sub(MAX_TAIL_BYTES)),
                ))?;
                file.take(MAX_TAIL_BYTES).read_to_end(&mut bytes)?;
            }
            Self::Memory { written, .. } => {
                // What is there, so that this waits for nobody: the daemon may not write, and nobody else reads.
                let there = rustix::io::ioctl_fionread(written)?.min(MAX_PIPE_BYTES);
                written.take(there).read_to_end(&mut bytes)?;
            }
        }
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
