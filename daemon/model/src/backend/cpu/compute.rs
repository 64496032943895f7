//! What every operation of the backend needs: threads, buffers, an instruction set, and rows shared out among threads.

use std::sync::Arc;

use super::Pool;
use super::arena::{Arena, Buffer};
use super::disjoint::Disjoint;
use super::simd::Isa;
use crate::backend::BackendError;

/// Floats of a rows' stage below which another thread's help costs more than it gives.
const SERIAL: usize = 8192;

/// Threads, buffers and an instruction set.
#[derive(Debug)]
pub(super) struct Compute {
    pub(super) pool: Arc<Pool>,
    pub(super) arena: Arena,
    pub(super) isa: Isa,
}

/// Activations `[rows, width]`.
#[derive(Debug, Default)]
pub struct CpuHidden {
    pub(super) values: Buffer,
    pub(super) width: usize,
}

impl CpuHidden {
    pub(super) fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..(row + 1) * self.width]
    }
}

impl Compute {
    /// Activations that hold what is left over.
    pub(super) fn hidden(&self, rows: usize, width: usize) -> Result<CpuHidden, BackendError> {
        let values = self.arena.take(rows * width)?;
        Ok(CpuHidden { values, width })
    }

    /// Calls `f` for every row, on all threads where the rows of `width` floats are together worth it.
    pub(super) fn rows(&self, rows: usize, width: usize, f: impl Fn(usize) + Sync) {
        let chunks = if rows * width <= SERIAL {
            1
        } else {
            rows.min(self.pool.threads() * 4)
        };
        let share = rows.div_ceil(chunks.max(1));
        self.pool.run(chunks, |chunk| {
            (chunk * share..rows.min((chunk + 1) * share)).for_each(&f);
        });
    }

    /// Calls `f` with every row of `out`, as [`Self::rows`].
    #[expect(unsafe_code, reason = "threads write different rows")]
    pub(super) fn fill(&self, out: &mut CpuHidden, f: impl Fn(usize, &mut [f32]) + Sync) {
        let (rows, width) = (out.rows(), out.width);
        let out = Disjoint::new(&mut out.values);
        self.rows(rows, width, |row| {
            // SAFETY: every row is taken once.
            f(row, unsafe { out.part(row * width..(row + 1) * width) });
        });
    }
}
