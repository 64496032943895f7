//! Activations: floats, or halves on their way into a product; and what happens to them between the products.

use std::cell::RefCell;

use super::CudaBackend;
use super::driver::bytes;
use super::memory::Buffer;
use super::weights::CudaMatrix;
use crate::TokenId;
use crate::backend::{BackendError, Input, Norm};

/// Activations `[rows, width]` on the device.
#[derive(Debug)]
pub struct CudaHidden {
    pub(super) data: Buffer,
    pub(super) rows: usize,
    pub(super) width: usize,
    /// Whether they are halves, which lie as `row_place` in `kernels/layout.cuh` has it.
    pub(super) half: bool,
    /// What halves must be multiplied by.
    pub(super) divisor: f32,
    /// What is still to be added, so that a norm can do it on its way.
    pending: RefCell<Option<Pending>>,
}

#[derive(Debug)]
struct Pending {
    y: Buffer,
    /// Address and epsilon of a norm of `y`.
    post: Option<(u64, f32)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct NormArgs {
    x: u64,
    y: u64,
    post: u64,
    weight: u64,
    out: u64,
    rows: u64,
    post_eps: f32,
    eps: f32,
    width: i32,
    none: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct EmbedArgs {
    quants: u64,
    scales: u64,
    tokens: u64,
    out: u64,
    factor: f32,
    width: i32,
    steps: i32,
    kind: i32,
}

/// Rows that one launch gathers.
const GATHERED: usize = 64;

#[repr(C)]
#[derive(Clone, Copy)]
struct GatherArgs {
    sources: [u64; GATHERED],
    out: u64,
    width: i32,
    none: i32,
}

/// The widest row: a block's threads hold 16 elements each.
const WIDEST: usize = 16 << 10;

/// Threads for a row: each a few elements.
fn threads(width: usize) -> usize {
    width.div_ceil(4).next_multiple_of(32).clamp(64, 1024)
}

impl CudaBackend {
    /// New rows of floats.
    pub(super) fn floats(&self, rows: usize, width: usize) -> Result<CudaHidden, BackendError> {
        self.hidden(rows, width, false, 1.0)
    }

    /// New rows of halves that stand for `divisor` times themselves.
    pub(super) fn halves(
        &self,
        rows: usize,
        width: usize,
        divisor: f32,
    ) -> Result<CudaHidden, BackendError> {
        self.hidden(rows, width, true, divisor)
    }

    fn hidden(
        &self,
        rows: usize,
        width: usize,
        half: bool,
        divisor: f32,
    ) -> Result<CudaHidden, BackendError> {
        let bytes = match half {
            true => 2 * rows.next_multiple_of(8) * width.next_multiple_of(64),
            false => 4 * rows * width,
        };
        Ok(CudaHidden {
            data: self.pool.take(bytes)?,
            rows,
            width,
            half,
            divisor,
            pending: RefCell::new(None),
        })
    }

    /// Rows as a product takes them.
    pub(super) fn taken(&self, x: Input<'_, Self>) -> Result<CudaHidden, BackendError> {
        match x {
            Input::Rows(x) if x.half => Ok(x),
            Input::Rows(x) => self.halve(&x, None, 1.0),
            Input::Normed(x, norm) => {
                let out = self.halves(x.rows, x.width, 1.0)?;
                self.norm(x, Some((&norm, &out)), None);
                Ok(out)
            }
        }
    }

    /// Norms the rows named, or all, with what is still to be added; without `to` only adds.
    pub(super) fn norm(
        &self,
        x: &CudaHidden,
        to: Option<(&Norm<'_, Self>, &CudaHidden)>,
        rows: Option<u64>,
    ) {
        let pending = x.pending.borrow_mut().take();
        let post = pending.as_ref().and_then(|pending| pending.post);
        let arguments = NormArgs {
            x: x.data.pointer,
            y: pending.as_ref().map_or(0, |pending| pending.y.pointer),
            post: post.map_or(0, |post| post.0),
            weight: to.as_ref().map_or(0, |(norm, _)| norm.weight.0.pointer),
            out: to.as_ref().map_or(0, |(_, out)| out.data.pointer),
            rows: rows.unwrap_or(0),
            post_eps: post.map_or(0.0, |post| post.1),
            eps: to.as_ref().map_or(0.0, |(norm, _)| norm.eps),
            width: x.width as i32,
            none: 0,
        };
        let count = match (rows, to) {
            (Some(_), Some((_, out))) => out.rows,
            _ => x.rows,
        };
        let mut recorder = self.recorder.borrow_mut();
        recorder.launch(
            self.kernels.norm,
            [count, 1, 1],
            threads(x.width),
            &arguments,
        );
    }

    /// Adds what is still to be added.
    pub(super) fn settle(&self, x: &CudaHidden) {
        if x.pending.borrow().is_some() {
            self.norm(x, None, None);
        }
    }

    /// Notes an addition for the norm that comes next.
    pub(super) fn add_later(&self, x: &CudaHidden, y: CudaHidden, norm: Option<Norm<'_, Self>>) {
        self.settle(x);
        *x.pending.borrow_mut() = Some(Pending {
            y: y.data,
            post: norm.map(|norm| (norm.weight.0.pointer, norm.eps)),
        });
    }

    pub(super) fn gathered<'a>(
        &self,
        count: usize,
        rows: impl Iterator<Item = (&'a CudaHidden, usize)>,
    ) -> Result<CudaHidden, BackendError> {
        let (mut width, mut sources) = (0, Vec::with_capacity(count));
        for (x, row) in rows {
            self.settle(x);
            width = x.width;
            sources.push(x.data.pointer + (row * width * size_of::<f32>()) as u64);
        }
        let out = self.floats(count, width)?;
        for (part, chunk) in sources.chunks(GATHERED).enumerate() {
            let mut arguments = GatherArgs {
                sources: [0; GATHERED],
                out: out.data.pointer + (part * GATHERED * width * size_of::<f32>()) as u64,
                width: width as i32,
                none: 0,
            };
            arguments.sources[..chunk.len()].copy_from_slice(chunk);
            let mut recorder = self.recorder.borrow_mut();
            recorder.launch(
                self.kernels.gather,
                [chunk.len(), 1, 1],
                threads(width),
                &arguments,
            );
        }
        Ok(out)
    }

    pub(super) fn embedded(
        &self,
        table: &CudaMatrix,
        tokens: &[TokenId],
        scale: f32,
    ) -> Result<CudaHidden, BackendError> {
        if table.inputs > WIDEST {
            return Err(BackendError::Unsupported(format!(
                "rows of {} elements on CUDA devices; they may have up to {WIDEST}",
                table.inputs
            )));
        }
        let out = self.floats(tokens.len(), table.inputs)?;
        let mut recorder = self.recorder.borrow_mut();
        let arguments = EmbedArgs {
            quants: table.quants.pointer,
            scales: table.scales.pointer,
            tokens: recorder.upload(bytes(tokens))?,
            out: out.data.pointer,
            factor: scale,
            width: table.inputs as i32,
            steps: table.steps as i32,
            kind: table.kind as i32,
        };
        let grid = [tokens.len(), 1, 1];
        recorder.launch(self.kernels.embed, grid, threads(table.inputs), &arguments);
        Ok(out)
    }
}
