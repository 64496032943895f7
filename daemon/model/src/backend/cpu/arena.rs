//! Buffers of floats that are used again: a steady step allocates none.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::backend::BackendError;

/// Buffers at rest. Whoever takes one gives it back, or the next step makes another.
#[derive(Debug, Default)]
pub(super) struct Arena(RefCell<Vec<Vec<f32>>>);

/// Floats out of an arena; what they hold at first is left over.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    values: Vec<f32>,
    len: usize,
}

impl Arena {
    /// Takes the smallest buffer at rest that holds `len` floats, or makes one.
    ///
    /// # Errors
    /// Where memory is short.
    pub(super) fn take(&self, len: usize) -> Result<Buffer, BackendError> {
        let mut rest = self.0.borrow_mut();
        let fits = |(_, buffer): &(usize, &Vec<f32>)| buffer.len() >= len;
        let best = rest.iter().enumerate().filter(fits);
        let values = match best.min_by_key(|(_, buffer)| buffer.len()) {
            // A buffer many times too large would keep another from a use that needs its size.
            Some((index, buffer)) if buffer.len() / 8 <= len => rest.swap_remove(index),
            _ => allocate(len)?,
        };
        Ok(Buffer { values, len })
    }

    /// Takes a buffer back.
    pub(super) fn give(&self, buffer: Buffer) {
        if !buffer.values.is_empty() {
            self.0.borrow_mut().push(buffer.values);
        }
    }
}

/// Makes a buffer of at least `len` floats. Powers of two: what grows from step to step, as the results of attention
/// do, is then seldom made anew.
fn allocate(len: usize) -> Result<Vec<f32>, BackendError> {
    let len = len.next_power_of_two();
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| BackendError::Memory {
            what: "activations",
            bytes: len * size_of::<f32>(),
        })?;
    values.resize(len, 0.0);
    Ok(values)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_buffer_is_used_again_and_the_best_fit_first() {
        let arena = Arena::default();
        let (large, small) = (arena.take(100), arena.take(40));
        let small = small.expect("memory");
        let address = small.as_ptr();
        arena.give(large.expect("memory"));
        arena.give(small);
        let again = arena.take(60).expect("memory");
        assert_eq!((again.len(), again.as_ptr()), (60, address));
        assert_eq!(arena.0.borrow().len(), 1);
        let tiny = arena.take(2).expect("memory");
        assert_eq!(tiny.values.len(), 2, "128 is too large for 2");
        assert_eq!(arena.0.borrow().len(), 1);
    }
}
