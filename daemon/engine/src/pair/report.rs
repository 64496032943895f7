//! What is known of a pair before its weights are read.

use tandem_model::load::ModelSummary;

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
