//! `tandem daemon logs`: what a daemon in the background wrote.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tandem_client::Paths;

use crate::args::LogsArgs;
use crate::failure::Failure;
use crate::output::Output;

const POLL: Duration = Duration::from_millis(200);

pub(crate) async fn run(args: LogsArgs) -> Result<(), Failure> {
    show(Paths::from_env()?.log_file(), args).await
}

/// Prints the end of a log, and what is added to it where that is asked for.
pub(crate) async fn show(path: PathBuf, args: LogsArgs) -> Result<(), Failure> {
    let failed = |source| Failure::io(format!("read `{}`", path.display()), source);
    let mut file = match File::open(&path) {
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(Failure::NoLog(path));
        }
        opened => opened.map_err(failed)?,
    };
    let mut output = Output::new();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let missing = args
        .lines
        .saturating_sub(bytes.split(|byte| *byte == b'\n').count());
    // A daemon that has just begun a new log has its past in the one before.
    if missing > 0
        && let Ok(before) = std::fs::read(path.with_extension("log.old"))
    {
        output.bytes(last_lines(&before, missing))?;
    }
    output.bytes(last_lines(&bytes, args.lines))?;
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            _ = tokio::signal::ctrl_c() => return Err(Failure::Interrupted),
        }
        bytes.clear();
        let next = replacement(&mut file, &path);
        // First what was added before it was set aside.
        file.read_to_end(&mut bytes).map_err(failed)?;
        if let Some(mut next) = next {
            next.read_to_end(&mut bytes).map_err(failed)?;
            file = next;
        }
        if !bytes.is_empty() {
            output.bytes(&bytes)?;
        }
    }
}

/// Returns the log that is to be read from its beginning, where a daemon has set this one aside, or somebody has emptied it.
fn replacement(file: &mut File, path: &Path) -> Option<File> {
    let identity = |meta: &std::fs::Metadata| (meta.dev(), meta.ino());
    let (ours, now) = (file.metadata().ok()?, path.metadata().ok()?);
    let is_cut = now.len() < file.stream_position().ok()?;
    (identity(&ours) != identity(&now) || is_cut)
        .then(|| File::open(path).ok())
        .flatten()
}

fn last_lines(bytes: &[u8], lines: usize) -> &[u8] {
    let ends = bytes
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(index, _)| index + 1);
    // The end of the last line does not begin another.
    let begin = ends
        .skip_while(|end| *end == bytes.len())
        .nth(lines.saturating_sub(1));
    if lines == 0 {
        &[]
    } else {
        &bytes[begin.unwrap_or(0)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_whole() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), b"b\nc\n");
        assert_eq!(last_lines(b"a\nb\nc", 2), b"b\nc");
        assert_eq!(last_lines(b"a\nb\n", 9), b"a\nb\n");
        assert_eq!(last_lines(b"a\n", 0), b"");
        assert_eq!(last_lines(b"", 3), b"");
    }
}
