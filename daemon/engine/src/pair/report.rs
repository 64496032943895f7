//! What is known of a pair before and while it loads.

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

/// What is known of a pair before its weights are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairReport {
    /// The target.
    pub target: ModelSummary,
    /// The draft, where the pair has one.
    pub draft: Option<ModelSummary>,
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
