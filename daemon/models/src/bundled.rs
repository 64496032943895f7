//! The models shipped inside Tandem: their bytes, and their way to a file that can be mapped.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// A model shipped inside Tandem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bundled {
    /// The draft of the default pair: 20 M parameters, the vocabulary of SmolLM2, Q8_0.
    SmolLm2Draft20m,
    /// The exit adapter of the default target: one block after its first 6, Q8_0.
    SmolLm2Exit6,
}

static SMOLLM2_DRAFT_20M: &[u8] = include_bytes!("../assets/smollm2-draft-20m-q8_0.gguf");
static SMOLLM2_EXIT6: &[u8] = include_bytes!("../assets/smollm2-135m-exit6-q8_0.gguf");

impl Bundled {
    const ALL: [Self; 2] = [Self::SmolLm2Draft20m, Self::SmolLm2Exit6];

    /// Finds a bundled model by its name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Returns the name after `bundled:`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SmolLm2Draft20m => "smollm2-draft-20m",
            Self::SmolLm2Exit6 => "smollm2-135m-exit6",
        }
    }

    /// Returns the whole GGUF file.
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Self::SmolLm2Draft20m => SMOLLM2_DRAFT_20M,
            Self::SmolLm2Exit6 => SMOLLM2_EXIT6,
        }
    }

    fn file_name(self) -> &'static str {
        match self {
            Self::SmolLm2Draft20m => "smollm2-draft-20m-q8_0.gguf",
            Self::SmolLm2Exit6 => "smollm2-135m-exit6-q8_0.gguf",
        }
    }

    /// Writes the model into `dir` unless the very same bytes lie there already, and returns its
    /// path.
    ///
    /// The file appears whole or not at all: whoever has a wrong one mapped keeps it, and two
    /// callers do no harm.
    pub(crate) fn install(self, dir: &Path) -> io::Result<PathBuf> {
        let path = dir.join(self.file_name());
        if !holds(&path, self.bytes()) {
            fs::create_dir_all(dir)?;
            let mut file = tempfile::Builder::new()
                .prefix(".install-")
                .tempfile_in(dir)?;
            file.write_all(self.bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|failed| failed.error)?;
        }
        Ok(path)
    }
}

/// Whether the file at `path` is exactly `bytes`; comparing is cheaper than a checksum and
/// stricter.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same = || -> io::Result<bool> {
        let file = File::open(path)?;
        if file.metadata()?.len() != bytes.len() as u64 {
            return Ok(false);
        }
        let (mut reader, mut buffer, mut at) = (BufReader::new(file), vec![0; 256 * 1024], 0);
        while at < bytes.len() {
            let read = reader.read(&mut buffer)?;
            if read == 0 || bytes.get(at..at + read) != Some(&buffer[..read]) {
                return Ok(false);
            }
            at += read;
        }
        Ok(true)
    };
    same().unwrap_or(false)
}
