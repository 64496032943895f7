//! What is known of a pair before and while it loads.

use crate::gguf::Gguf;

/// What the headers say about one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSummary {
    /// `general.name`, or the file's name.
    pub name: String,
    /// `general.architecture`.
    pub architecture: String,
    /// The format of most weights, such as `Q4_1`.
    pub quantization: String,
    /// Weights.
    pub parameters: u64,
    /// Bytes of the weights in the file.
    pub weight_bytes: u64,
    /// Tokens.
    pub vocabulary_size: usize,
}

impl ModelSummary {
    /// What a file's header says.
    pub(super) fn of(gguf: &Gguf, architecture: &str, vocabulary_size: usize) -> Self {
        let name = gguf.optional_str("general.name").ok().flatten();
        Self {
            name: name.map_or_else(|| gguf.path().display().to_string(), str::to_owned),
            architecture: architecture.to_owned(),
            quantization: gguf
                .dominant_format()
                .map_or_else(String::new, |format| format!("{format:?}")),
            parameters: gguf.parameters(),
            weight_bytes: gguf.tensors().iter().map(|tensor| tensor.bytes).sum(),
            vocabulary_size,
        }
    }
}

/// What is known of a pair before its weights are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairReport {
    /// The target.
    pub target: ModelSummary,
    /// The draft, where the pair has one, or the exit adapter with which the target drafts for itself.
    pub draft: Option<ModelSummary>,
    /// The layers after which the target leaves to draft for itself, where it does; a measured one is known only once
    /// the pair is loaded.
    pub exit_layer: Option<usize>,
    /// Most tokens of prompt and output together.
    pub context_length: usize,
    /// Bytes of weights and of one full-length cache of each model.
    pub footprint: u64,
    /// Findings that do not prevent serving.
    pub warnings: Vec<String>,
    /// What it runs on, such as `cpu (candle)`.
    pub backend: &'static str,
    /// Whether a row's result is independent, to the bit, of its neighbours.
    pub batch_invariant: bool,
}

/// How far loading is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// Bytes of weights read.
    pub loaded_bytes: u64,
    /// Bytes of weights in all.
    pub total_bytes: u64,
}
