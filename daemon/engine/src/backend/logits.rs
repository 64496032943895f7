//! Logits on the host.

use std::fmt::Debug;
use std::sync::Arc;

use super::BackendError;

/// Memory of a backend's own in which logits arrive.
pub(super) trait Arrivals: Debug + Send + Sync {
    /// What arrived, and more that is left over.
    fn floats(&self) -> &[f32];
}

/// Logits of some rows, row-major `[rows, vocabulary]`; a buffer to be used again and again.
#[derive(Debug, Default)]
pub struct Logits {
    /// As many as ever were needed.
    values: Vec<f32>,
    /// Where the backend has them; `None`: in `values`.
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

    /// Takes logits where they are; the backend gets its memory back with the next reset.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "for devices that have such memory")
    )]
    pub(super) fn lend(&mut self, rows: usize, vocabulary: usize, values: Arc<dyn Arrivals>) {
        (self.rows, self.vocabulary) = (rows, vocabulary);
        self.lent = Some(values);
    }

    /// The logits of the `row`-th row asked for.
    ///
    /// # Panics
    /// If fewer rows were asked for.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of {} logits", self.rows);
        let values = self
            .lent
            .as_ref()
            .map_or(&self.values[..], |lent| lent.floats());
        &values[row * self.vocabulary..(row + 1) * self.vocabulary]
    }
}
