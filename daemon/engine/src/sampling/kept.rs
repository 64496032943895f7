//! A row of logits that outlives the forward that it came from.

use tandem_model::logits::{Leading, LogitsRow, Rest};

/// A row that is kept.
#[derive(Clone, Debug)]
pub(crate) struct KeptRow {
    leading: Leading,
    /// Empty where whoever kept it will not read them.
    values: Vec<f32>,
}

impl KeptRow {
    /// Keeps what leads, and all `values` if they will be read.
    pub(crate) fn of(row: LogitsRow<'_>, values: bool) -> Self {
        Self {
            leading: row.leading(),
            values: if values {
                row.values().to_vec()
            } else {
                Vec::new()
            },
        }
    }

    pub(crate) fn row(&self) -> LogitsRow<'_> {
        LogitsRow::told(&self.leading, self, 0)
    }
}

impl Rest for KeptRow {
    fn values(&self, _row: usize) -> &[f32] {
        &self.values
    }
}
