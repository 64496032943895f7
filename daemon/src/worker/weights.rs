//! The mapped files that an engine computes with: somebody may cut them, write to them, or their disk may fail.

use tandem_engine::pair::PairReport;
use tandem_model::load::{MappedWeights, ModelSummary, WeightsDamage};

use super::loss::Loss;

/// Those of one load; `None`: the weights lie in memory.
pub(super) struct Weights {
    target: Option<MappedWeights>,
    draft: Option<MappedWeights>,
}

impl Weights {
    pub(super) fn of(report: &PairReport) -> Self {
        let mut weights = Self {
            target: report.target.mapped.clone(),
            draft: None,
        };
        weights.set_draft(report.draft.as_ref());
        weights
    }

    /// Goes on with another draft, or none.
    pub(super) fn set_draft(&mut self, draft: Option<&ModelSummary>) {
        self.draft = draft.and_then(|draft| draft.mapped.clone());
    }

    /// Fails where what the target computed since the last look may be wrong.
    pub(super) fn check_target(&self) -> Result<(), Loss> {
        let checked = self.target.as_ref().map_or(Ok(()), MappedWeights::check);
        checked.map_err(Loss::Weights)
    }

    /// The same of the draft.
    pub(super) fn check_draft(&self) -> Result<(), WeightsDamage> {
        self.draft.as_ref().map_or(Ok(()), MappedWeights::check)
    }
}
