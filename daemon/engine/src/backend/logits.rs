//! Logits on the host.

use super::BackendError;

/// Logits of some rows, row-major `[rows, vocabulary]`; a buffer to be used again and again.
#[derive(Debug, Default)]
pub struct Logits {
    /// As many as ever were needed.
    values: Vec<f32>,
    rows: usize,
    vocabulary: usize,
}

impl Logits {
    /// Makes room for `rows` rows, whose values are left over. Allocates only to grow.
    ///
    /// # Errors
    /// Where memory is short.
    pub fn reset(&mut self, rows: usize, vocabulary: usize) -> Result<&mut [f32], BackendError> {
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

    /// The logits of the `row`-th row asked for.
    ///
    /// # Panics
    /// If fewer rows were asked for.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f32] {
        assert!(row < self.rows, "row {row} of {} logits", self.rows);
        &self.values[row * self.vocabulary..(row + 1) * self.vocabulary]
    }
}
