//! Logits for the host: whole, or of each row what leads and the rest when it is read. How tokens are chosen by them is
//! not known here.

mod leading;
mod row;

use std::fmt::Debug;
use std::sync::Arc;

pub use leading::{LEADING, Leading};
pub use row::{LogitsRow, Rest};

use crate::backend::BackendError;

/// Logits that a device keeps until they are read.
pub(crate) trait Arrivals: Debug + Send + Sync {
    /// Those of a row, fetched when they are first asked for; none where that failed.
    fn values(&self, row: usize) -> &[f32];
    /// What leads in a row.
    fn leading(&self, row: usize) -> &Leading;
    /// Why fetching failed, where it did.
    fn failure(&self) -> Option<BackendError>;
}

/// Logits of some rows, row-major `[rows, vocabulary]`; a buffer to be used again and again.
#[derive(Debug, Default)]
pub struct Logits {
    /// As many as ever were needed.
    values: Vec<f32>,
    /// Where a device has them; `None`: in `values`.
    lent: Option<Arc<dyn Arrivals>>,
    rows: usize,
    vocabulary: usize,
}

impl Logits {
    /// Makes room for `rows` rows, whose values are left over. Allocates only to grow.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn reset(&mut self, rows: usize, vocabulary: usize) -> Result<&mut [f32], BackendError> {
        self.lent = None;
        let len = rows * vocabulary;
        if len > self.values.len() {
            let more = len - self.values.len();
            self.values
                .try_reserve_exact(more)
                .map_err(|_| BackendError::Memory {
                    what: "logits",
                    bytes: len * size_of::<f32>(),
                })?;
            self.values.resize(len, 0.0);
        }
        (self.rows, self.vocabulary) = (rows, vocabulary);
        Ok(&mut self.values[..len])
    }

    /// Takes logits where they are; the device gets its memory back with the next reset.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "for devices that keep logits")
    )]
    pub(crate) fn lend(&mut self, rows: usize, vocabulary: usize, values: Arc<dyn Arrivals>) {
        (self.rows, self.vocabulary) = (rows, vocabulary);
        self.lent = Some(values);
    }

    /// The logits of the `row`-th row asked for, which are fetched where a device still has them.
    ///
    /// # Panics
    /// If fewer rows were asked for.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of {} logits", self.rows);
        match &self.lent {
            Some(lent) => lent.values(row),
            None => &self.values[row * self.vocabulary..(row + 1) * self.vocabulary],
        }
    }

    /// The same, of which only what is read is fetched.
    ///
    /// # Panics
    /// If fewer rows were asked for.
    #[must_use]
    pub fn at(&self, row: usize) -> LogitsRow<'_> {
        match &self.lent {
            Some(lent) => LogitsRow::told(lent.leading(row), self, row),
            None => self.row(row).into(),
        }
    }

    /// Whether all that was read of them had arrived; what was read after a failure is empty.
    ///
    /// # Errors
    /// What the device said.
    pub fn arrived(&self) -> Result<(), BackendError> {
        match self.lent.as_ref().and_then(|lent| lent.failure()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

impl Rest for Logits {
    fn values(&self, row: usize) -> &[f32] {
        self.row(row)
    }
}
