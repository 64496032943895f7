//! Buffers of floats that are used again: a steady step allocates none.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use crate::backend::BackendError;

/// Buffers at rest. Only the engine thread takes and returns them, so the lock is never waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Arena(Arc<Mutex<Vec<Vec<f32>>>>);

/// Floats that return to their arena; what they hold at first is left over.
#[derive(Debug)]
pub(super) struct Buffer {
    values: Vec<f32>,
    len: usize,
    home: Arena,
}

impl Arena {
    /// Takes the smallest buffer at rest that holds `len` floats, or makes one.
    ///
    /// # Errors
    /// Where memory is short.
    pub(super) fn take(&self, len: usize) -> Result<Buffer, BackendError> {
        let mut rest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |(_, buffer): &(usize, &Vec<f32>)| buffer.len() >= len;
        let best = rest.iter().enumerate().filter(fits);
        let values = match best.min_by_key(|(_, buffer)| buffer.len()) {
            // A buffer many times too large would keep another from a use that needs its size.
            Some((index, buffer)) if buffer.len() / 8 <= len => rest.swap_remove(index),
            _ => {
                let mut values = Vec::new();
                values
                    .try_reserve_exact(len)
                    .map_err(|_| BackendError::Memory {
                        what: "activations",
                        bytes: len * size_of::<f32>(),
                    })?;
                values.resize(len, 0.0);
                values
            }
        };
        Ok(Buffer {
            values,
            len,
            home: self.clone(),
        })
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.values);
        let mut rest = self.home.0.lock().unwrap_or_else(PoisonError::into_inner);
        rest.push(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again_and_the_best_fit_first() {
        let arena = Arena::default();
        let (large, small) = (arena.take(100), arena.take(40));
        let small = small.expect("memory");
        let address = small.as_ptr();
        drop((large, small));
        let again = arena.take(30).expect("memory");
        assert_eq!((again.len(), again.as_ptr()), (30, address));
        assert_eq!(arena.0.lock().expect("sound").len(), 1);
        let tiny = arena.take(2).expect("memory");
        assert_ne!(tiny.len(), 100);
        assert_eq!(
            arena.0.lock().expect("sound").len(),
            1,
            "100 is too large for 2"
        );
    }
}
