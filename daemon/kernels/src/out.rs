//! Where products go: a window of outputs of a row-major result, which threads can split among themselves.
#![expect(unsafe_code, reason = "threads write disjoint columns of one buffer")]

use std::{marker::PhantomData, ops::Range};

/// Exclusive access to the outputs `outputs()` of every row of a result: element (r, o) lies at `r · stride + o`.
#[derive(Debug)]
pub struct OutView<'a> {
    values: *mut f32,
    rows: usize,
    stride: usize,
    outputs: Range<usize>,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: a view is an exclusive borrow of floats that no other view reaches.
unsafe impl Send for OutView<'_> {}
// SAFETY: a shared view gives no access except through `alias`, which is unsafe to call.
unsafe impl Sync for OutView<'_> {}

impl<'a> OutView<'a> {
    /// A view of all of `values`: rows of `stride` outputs each; a last partial row is left out.
    pub fn new(values: &'a mut [f32], stride: usize) -> OutView<'a> {
        let rows = values.len().checked_div(stride).unwrap_or(0);
        OutView {
            values: values.as_mut_ptr(),
            rows,
            stride,
            outputs: 0..stride,
            borrow: PhantomData,
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The outputs within reach.
    pub fn outputs(&self) -> Range<usize> {
        self.outputs.clone()
    }

    /// Cuts the window in two before output `at` (counted in the whole result), for two threads.
    ///
    /// # Panics
    /// If `at` lies outside the window.
    pub fn split_at(self, at: usize) -> (OutView<'a>, OutView<'a>) {
        assert!(
            self.outputs.start <= at && at <= self.outputs.end,
            "output {at} is not in {:?}",
            self.outputs
        );
        let (left, right) = (self.outputs.start..at, at..self.outputs.end);
        (
            OutView {
                outputs: left,
                ..self
            },
            OutView {
                outputs: right,
                ..self
            },
        )
    }

    /// A second view of a part of the window, for thread pools that hand out work by index.
    ///
    /// # Safety
    /// Of all views that alias, no two that are used at the same time share an output.
    ///
    /// # Panics
    /// If `outputs` reaches outside the window.
    pub unsafe fn alias(&self, outputs: Range<usize>) -> OutView<'a> {
        assert!(
            self.outputs.start <= outputs.start && outputs.end <= self.outputs.end,
            "{outputs:?} is out of reach"
        );
        OutView { outputs, ..*self }
    }

    /// The outputs within reach, of one row.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows).
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.rows, "row {row} is not below {}", self.rows);
        let start = self
            .values
            .wrapping_add(row * self.stride + self.outputs.start);
        // SAFETY: the outputs lie in the buffer and are this view's alone, which stays borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(start, self.outputs.len()) }
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Where element (row, output) lies.
    pub(super) fn at(&self, row: usize, output: usize) -> *mut f32 {
        debug_assert!(
            row < self.rows && self.outputs.contains(&output),
            "callers check the window first"
        );
        self.values.wrapping_add(row * self.stride + output)
    }
}
