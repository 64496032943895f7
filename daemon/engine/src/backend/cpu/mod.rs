//! The `cpu` backend: our own kernels on packed weights, a pool of threads, keys and values as halves. It is
//! batch-invariant to the bit: a row's result depends on the row, on what its sequence has stored and on the weights,
//! not on other rows, on how a prompt is cut, or on the number of threads.
//!
//! `tandem-kernels` multiplies; here is all else. Knows nothing of architectures or of where the number of threads comes from.

mod arena;
mod attention;
mod cache;
mod disjoint;
mod pool;
pub(crate) mod prepared;
mod products;
mod rope;
mod rows;
mod simd;
#[cfg(test)]
mod tests;
mod weights;

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::sync::Arc;

pub use cache::CpuCache;
pub use rope::CpuRope;
pub use weights::CpuMatrix;

use arena::{Arena, Buffer};
use disjoint::Disjoint;
use pool::Pool;
use simd::Isa;
use tandem_kernels::QuantizedRows;
use tandem_prepared::Image;

use super::{
    Activation, AttentionParams, Backend, BackendError, CacheShape, Linear, Logits, RowPlan,
};
use crate::TokenId;
use crate::gguf::{Gguf, TensorInfo};

/// Floats of a rows' stage below which another thread's help costs more than it gives.
const SERIAL: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct CpuBackend {
    compute: Compute,
    /// The rows of the product in progress.
    quantized: RefCell<QuantizedRows>,
    /// Where the weights of the model come from; `None`: they are packed out of its file.
    prepared: Option<Arc<Image>>,
}

/// What every operation needs.
#[derive(Debug)]
struct Compute {
    pool: Pool,
    arena: Arena,
    isa: Isa,
}

/// Activations `[rows, width]`.
#[derive(Debug)]
pub struct CpuHidden {
    values: Buffer,
    width: usize,
}

impl CpuHidden {
    fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.width..(row + 1) * self.width]
    }
}

impl Compute {
    /// Calls `f` for every row, on all threads where the rows together hold more floats than `serial`.
    fn rows(&self, rows: usize, width: usize, serial: usize, f: impl Fn(usize) + Sync) {
        let chunks = if rows * width <= serial {
            1
        } else {
            rows.min(self.pool.threads() * 4)
        };
        let share = rows.div_ceil(chunks.max(1));
        self.pool.run(chunks, |chunk| {
            (chunk * share..rows.min((chunk + 1) * share)).for_each(&f);
        });
    }

    fn hidden(&self, rows: usize, width: usize) -> Result<CpuHidden, BackendError> {
        let values = self.arena.take(rows * width)?;
        Ok(CpuHidden { values, width })
    }

    /// Calls `f` with every row of `out`, as [`Self::rows`].
    #[expect(unsafe_code, reason = "threads write different rows")]
    fn fill(&self, out: &mut CpuHidden, f: impl Fn(usize, &mut [f32]) + Sync) {
        let (rows, width) = (out.rows(), out.width);
        let out = Disjoint::new(&mut out.values);
        self.rows(rows, width, SERIAL, |row| {
            // SAFETY: every row is taken once.
            f(row, unsafe { out.part(row * width..(row + 1) * width) });
        });
    }
}

impl CpuBackend {
    /// Computes on `threads` threads, the caller's counted: as many as the machine has fast cores.
    #[must_use]
    pub fn new(threads: NonZeroUsize) -> Self {
        Self {
            compute: Compute {
                pool: Pool::new("compute", threads),
                arena: Arena::default(),
                isa: Isa::detect(),
            },
            quantized: RefCell::new(QuantizedRows::new()),
            prepared: None,
        }
    }

    /// Takes the weights out of a prepared file that was checked against the model's.
    #[must_use]
    pub(crate) fn with_prepared(self, prepared: Option<Arc<Image>>) -> Self {
        Self { prepared, ..self }
    }
}

impl Backend for CpuBackend {
    type Matrix = CpuMatrix;
    type Vector = Box<[f32]>;
    type Rope = CpuRope;
    type Hidden = CpuHidden;
    type Cache = CpuCache;

    fn name(&self) -> &'static str {
        "cpu"
    }

    fn batch_invariant(&self) -> bool {
        true
    }

    fn cache_bytes_per_position(&self, shape: CacheShape) -> u64 {
        cache::slot_bytes(shape) as u64
    }

    fn matrix(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<CpuMatrix, BackendError> {
        weights::matrix(gguf, tensor, self.prepared.as_ref())
    }

    fn vector(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<Box<[f32]>, BackendError> {
        weights::vector(gguf, tensor, self.prepared.as_ref())
    }

    fn rope(&self, frequencies: &[f32], positions: usize) -> Result<CpuRope, BackendError> {
        Ok(CpuRope::new(frequencies, positions))
    }

    fn cache(&self, shape: CacheShape) -> Result<CpuCache, BackendError> {
        if shape.head_dim > attention::HEAD_DIM_LIMIT {
            return Err(BackendError::Unsupported(format!(
                "heads of {} elements; the cpu backend takes up to {}",
                shape.head_dim,
                attention::HEAD_DIM_LIMIT
            )));
        }
        Ok(CpuCache::new(shape))
    }

    fn reserve(&self, cache: &mut CpuCache, positions: usize) -> Result<(), BackendError> {
        cache.reserve(positions)
    }

    fn keep(
        &self,
        cache: &mut CpuCache,
        from: usize,
        offsets: &[usize],
    ) -> Result<(), BackendError> {
        cache.keep(from, offsets);
        Ok(())
    }

    fn fork(&self, cache: &CpuCache, positions: usize) -> Result<CpuCache, BackendError> {
        cache.fork(positions)
    }

    fn cache_bytes(&self, cache: &CpuCache) -> u64 {
        cache.bytes() as u64
    }

    fn embed(
        &self,
        table: &CpuMatrix,
        tokens: &[TokenId],
        scale: f32,
    ) -> Result<CpuHidden, BackendError> {
        let mut out = self.compute.hidden(tokens.len(), table.0.inputs())?;
        self.compute.fill(&mut out, |row, out| {
            table.0.dequantize_row(tokens[row] as usize, out);
            out.iter_mut().for_each(|x| *x *= scale);
        });
        Ok(out)
    }

    fn rms_norm(
        &self,
        x: &CpuHidden,
        weight: &Box<[f32]>,
        eps: f32,
    ) -> Result<CpuHidden, BackendError> {
        let mut out = self.compute.hidden(x.rows(), x.width)?;
        let isa = self.compute.isa;
        self.compute.fill(&mut out, |row, out| {
            let x = x.row(row);
            isa.run(rows::RmsNorm {
                x,
                weight,
                eps,
                out,
            });
        });
        Ok(out)
    }

    fn linear<const N: usize>(
        &self,
        x: &CpuHidden,
        maps: [Linear<'_, Self>; N],
    ) -> Result<[CpuHidden; N], BackendError> {
        let mut out = Vec::with_capacity(N);
        for map in &maps {
            out.push(self.compute.hidden(x.rows(), map.weight.0.outputs())?);
        }
        let mut out: [CpuHidden; N] = out.try_into().expect("one result per map");
        let quantized = &mut self.quantized.borrow_mut();
        let matrices = maps.each_ref().map(|map| &map.weight.0);
        products::quantize(
            &self.compute,
            x.rows(),
            |row| x.row(row),
            &matrices,
            quantized,
        );
        let parts = std::array::from_fn(|i| maps[i].bias.map(|bias| &**bias));
        let results = out.each_mut().map(|out| &mut *out.values);
        products::multiply(&self.compute, quantized, matrices, parts, results);
        Ok(out)
    }

    fn attention(
        &self,
        params: &AttentionParams<'_, CpuRope>,
        [mut queries, mut keys, values]: [CpuHidden; 3],
        plan: &RowPlan,
        caches: &mut [&mut CpuCache],
    ) -> Result<CpuHidden, BackendError> {
        let qkv = attention::Projections {
            queries: &mut queries.values,
            keys: &mut keys.values,
            values: &values.values,
        };
        Ok(CpuHidden {
            values: attention::attend(&self.compute, params, qkv, plan, caches)?,
            width: queries.width,
        })
    }

    fn gated_mlp(
        &self,
        x: &CpuHidden,
        [gate, up, down]: [&CpuMatrix; 3],
        activation: Activation,
    ) -> Result<CpuHidden, BackendError> {
        let rows = x.rows();
        let mut inner = self.compute.hidden(rows, gate.0.outputs())?;
        let mut factor = self.compute.hidden(rows, gate.0.outputs())?;
        let mut out = self.compute.hidden(rows, down.0.outputs())?;
        let quantized = &mut self.quantized.borrow_mut();
        let pair = [&gate.0, &up.0];
        products::quantize(&self.compute, rows, |row| x.row(row), &pair, quantized);
        let results = [&mut *inner.values, &mut *factor.values];
        products::multiply_gated(&self.compute, quantized, pair, activation, results);
        products::quantize(
            &self.compute,
            rows,
            |row| inner.row(row),
            &[&down.0],
            quantized,
        );
        let results = [&mut *out.values];
        products::multiply(&self.compute, quantized, [&down.0], [None], results);
        Ok(out)
    }

    fn add(&self, x: &mut CpuHidden, y: &CpuHidden) -> Result<(), BackendError> {
        let isa = self.compute.isa;
        self.compute.fill(x, |row, x| {
            isa.run(rows::AddTo { x, y: y.row(row) });
        });
        Ok(())
    }

    fn logits(
        &self,
        x: &CpuHidden,
        rows: &[usize],
        head: &CpuMatrix,
    ) -> Result<Logits, BackendError> {
        let vocabulary = head.0.outputs();
        let mut values = Vec::new();
        values
            .try_reserve_exact(rows.len() * vocabulary)
            .map_err(|_| BackendError::Memory {
                what: "logits",
                bytes: rows.len() * vocabulary * size_of::<f32>(),
            })?;
        values.resize(rows.len() * vocabulary, 0.0);
        let quantized = &mut self.quantized.borrow_mut();
        products::quantize(
            &self.compute,
            rows.len(),
            |i| x.row(rows[i]),
            &[&head.0],
            quantized,
        );
        products::multiply(&self.compute, quantized, [&head.0], [None], [&mut values]);
        Ok(Logits::new(values, vocabulary))
    }
}
