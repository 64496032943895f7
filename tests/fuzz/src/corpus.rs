//! Inputs on disk: what is committed, and what made the process end.

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

/// Returns the committed inputs of a target, in the order of their names.
pub(crate) fn read(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<_> = fs::read_dir(folder(target))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let bytes = fs::read(entry.path()).expect("the corpus can be read");
            (entry.file_name().display().to_string(), bytes)
        })
        .collect();
    inputs.sort();
    inputs
}

/// Adds an input to what is committed, under a name that its content gives.
pub(crate) fn keep(target: &str, input: &[u8]) {
    let folder = folder(target);
    fs::create_dir_all(&folder).expect("the corpus can be written");
    fs::write(folder.join(name(input)), input).expect("the corpus can be written");
}

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

fn name(input: &[u8]) -> String {
    let mut hasher = XxHash3_64::new();
    hasher.write(input);
    format!("{:016x}", hasher.finish())
}

/// Where failing inputs are left, beside the test's program: outside of the sources, and found again.
fn failures() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows its own file");
    let folder = tests
        .parent()
        .expect("a file has a directory")
        .join("tandem-fuzz-failures");
    fs::create_dir_all(&folder).expect("the directory can be made");
    folder
}

/// Leaves an input that failed; returns where.
pub(crate) fn leave(target: &str, input: &[u8]) -> PathBuf {
    let path = failures().join(format!("{target}-{}", name(input)));
    fs::write(&path, input).expect("a file can be written");
    path
}

/// The input that runs, in a file: where it ends the whole process, it is still known.
#[derive(Debug)]
pub(crate) struct Running {
    file: File,
    path: PathBuf,
    len: u64,
}

impl Running {
    pub(crate) fn new(target: &str) -> Self {
        let path = failures().join(format!("{target}-running"));
        if path.metadata().is_ok_and(|meta| meta.len() > 0) {
            let kept = path.with_extension("ended-the-process");
            let _ = fs::rename(&path, &kept);
            eprintln!("fuzz {target}: an earlier run ended in {}", kept.display());
        }
        let file = File::create(&path).expect("a file can be made");
        Self { file, path, len: 0 }
    }

    pub(crate) fn set(&mut self, input: &[u8]) {
        let len = input.len() as u64;
        if len < self.len {
            self.file.set_len(len).expect("a file can be cut");
        }
        self.file
            .write_all_at(input, 0)
            .expect("a file can be written");
        self.len = len;
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
