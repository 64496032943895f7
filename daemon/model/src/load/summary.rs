//! What is known of a model before and while it loads.

use std::path::{Path, PathBuf};

use tandem_prepared::{MappedWeights, Stamp};

use crate::gguf::{Gguf, shown};

/// Characters of a name that are passed on.
const NAME: usize = 200;

/// What the headers say about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSummary {
    /// `general.name`, cut where it is long, or the file's name.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// How the file's quantization is called, such as `Q4_K_M`; see [`Gguf::quantization`].
    pub quantization: String,
    /// Weights.
    pub parameters: u64,
    /// Bytes of the weights in the file.
    pub weight_bytes: u64,
    /// Tokens.
    pub vocabulary_size: usize,
    /// Where the weights lie once they are loaded.
    pub weights: WeightSource,
    /// Bytes of prepared weights that are mapped: clean pages of a file, shared between processes. 0 where the weights
    /// lie in memory of their own. Prepared weights can be a little larger than those in the model file.
    pub mapped_bytes: u64,
    /// These prepared weights, to see whether they still are what was mapped.
    pub mapped: Option<MappedWeights>,
    /// The file, as it was found.
    pub path: PathBuf,
    /// Which file it was, and when that had last changed.
    pub stamp: Stamp,
    /// What the file holds, as a number; known only of prepared weights.
    pub content: Option<String>,
}

/// Where the weights of a loaded model lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightSource {
    /// In memory of the process or of the device.
    #[default]
    Memory,
    /// In a prepared file that this load made.
    Prepared,
    /// In a prepared file that was there.
    Mapped,
}

impl ModelSummary {
    /// What a file's header says.
    pub(super) fn of(gguf: &Gguf, architecture: &str, vocabulary_size: usize) -> Self {
        let name = gguf.optional_str("general.name").ok().flatten();
        Self {
            name: match name {
                Some(name) => shown(name, NAME),
                None => gguf.path().display().to_string(),
            },
            architecture: architecture.to_owned(),
            quantization: gguf.quantization(),
            parameters: gguf.parameters(),
            weight_bytes: gguf.tensors().iter().map(|tensor| tensor.bytes).sum(),
            vocabulary_size,
            weights: WeightSource::Memory,
            mapped_bytes: 0,
            mapped: None,
            path: gguf.path().to_owned(),
            stamp: *gguf.stamp(),
            content: None,
        }
    }

    /// Whether what was loaded is what the file at `path` holds now: by its stamp or, where that is another one and it is
    /// known what was loaded, by what `content_of` says of the file.
    ///
    /// # Errors
    /// Where there is no such file.
    pub fn is_of<E>(
        &self,
        path: &Path,
        content_of: impl FnOnce(&Path) -> Result<String, E>,
    ) -> std::io::Result<bool> {
        let stamp = Stamp::of(&std::fs::metadata(path)?);
        // Reading all of the file only tells where there is something to compare it with.
        let same = || {
            let loaded = self.content.as_ref()?;
            Some(content_of(path).ok()? == *loaded)
        };
        Ok(stamp == self.stamp || same().unwrap_or(false))
    }
}

/// How far loading is with one of the models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// `target`, `draft` or `exit adapter`.
    pub role: &'static str,
    /// What is being done with it.
    pub stage: LoadStage,
    /// Bytes that this stage is done with.
    pub done_bytes: u64,
    /// Bytes of this stage in all; 0 where that is not known.
    pub total_bytes: u64,
}

/// What loading is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStage {
    /// The model file is new here, and is read to see what it holds.
    Identifying,
    /// Another process prepares the same weights.
    Waiting,
    /// Weights are prepared and written.
    Preparing,
    /// Prepared weights are compared with their checksums.
    Checking,
    /// Weights are read into memory.
    Reading,
}
