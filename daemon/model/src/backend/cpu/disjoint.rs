//! One buffer written by several threads, each in places of its own.
#![expect(
    unsafe_code,
    reason = "chunks of a stage write disjoint parts of one buffer"
)]

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice whose parts are handed out one by one.
pub(super) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it stands for a `&mut [T]`, and `part` is unsafe: its callers see to it that parts do not overlap.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Borrows the slice for as long as parts of it are used.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Self {
            start: slice.as_mut_ptr(),
            len: slice.len(),
            slice: PhantomData,
        }
    }

    /// A part of the slice.
    ///
    /// # Safety
    /// No two parts that are in use at the same time overlap.
    ///
    /// # Panics
    /// If the range is not within the slice.
    #[expect(
        clippy::mut_from_ref,
        reason = "the parts are disjoint, which the caller promises"
    )]
    pub(super) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a part lies within its slice"
        );
        // SAFETY: within the slice, which is borrowed mutably for 'a; the caller excludes overlap.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
