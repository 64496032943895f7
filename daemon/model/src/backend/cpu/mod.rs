//! The `cpu` backend: our own kernels on packed weights, a pool of threads, keys and values as halves. It is
//! batch-invariant to the bit: a row's result depends on the row, on what its sequence has stored and on the weights,
//! not on other rows, on how a prompt is cut, or on the number of threads.
//!
//! `tandem-kernels` multiplies; here is all else. Knows nothing of architectures or of where the number of threads comes from.

mod arena;
mod attention;
mod cache;
mod compute;
mod disjoint;
mod norm;
mod pool;
pub(crate) mod prepared;
mod products;
mod rope;
mod rows;
mod simd;
#[cfg(test)]
mod tests;
pub(super) mod weights;

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use cache::CpuCache;
pub use compute::CpuHidden;
pub use pool::Pool;
pub use rope::CpuRope;
pub use weights::CpuMatrix;

use arena::Arena;
use compute::Compute;
use products::Products;
use rows::AddTo;
use simd::Isa;
use tandem_prepared::Image;

use super::{
    Activation, AttentionParams, Backend, BackendError, CacheShape, Input, Linear, Logits, Norm,
    RowPlan,
};
use crate::TokenId;
use crate::gguf::{Gguf, TensorInfo};

/// See the module.
#[derive(Debug)]
pub struct CpuBackend {
    compute: Compute,
    kernels: tandem_kernels::Isa,
    products: Box<RefCell<Products>>,
    /// The pool to go back to, while the backend computes on the calling thread alone.
    pool: Option<Arc<Pool>>,
    /// Where the weights of one model file come from; `None`: they are packed out of it.
    prepared: Option<(PathBuf, Arc<Image>)>,
}

impl CpuBackend {
    /// Computes on `threads` threads of its own, the caller's counted: as many as the machine has fast cores.
    #[must_use]
    pub fn new(threads: NonZeroUsize) -> Self {
        Self::on(Arc::new(Pool::new(threads)))
    }

    /// Computes on the threads of a pool, which other models may use in turn.
    #[must_use]
    pub fn on(pool: Arc<Pool>) -> Self {
        Self::with(pool, Isa::detect(), tandem_kernels::isa())
    }

    /// Computes on the calling thread, by code that uses no instructions which only some CPUs have: what every other way of
    /// computing can be held against.
    #[must_use]
    pub fn plain() -> Self {
        let pool = Arc::new(Pool::new(NonZeroUsize::MIN));
        Self::with(pool, Isa::Portable, tandem_kernels::Isa::Portable)
    }

    /// `isa` is for all but the products, which `kernels` names the instruction set of.
    fn with(pool: Arc<Pool>, isa: Isa, kernels: tandem_kernels::Isa) -> Self {
        Self {
            compute: Compute {
                pool,
                arena: Arena::default(),
                isa,
            },
            kernels,
            products: Box::new(RefCell::new(Products::new(kernels))),
            pool: None,
            prepared: None,
        }
    }

    /// Takes the weights of the model file at `path` out of a prepared file that was checked against it.
    #[must_use]
    pub(crate) fn with_prepared(self, path: &Path, image: Option<Arc<Image>>) -> Self {
        let prepared = image.map(|image| (path.to_owned(), image));
        Self { prepared, ..self }
    }

    /// The prepared file of this very model file: another, such as an adapter's, has tensors of the same names.
    fn image(&self, gguf: &Gguf) -> Option<&Arc<Image>> {
        let (path, image) = self.prepared.as_ref()?;
        (path == gguf.path()).then_some(image)
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

    fn alone(&mut self, alone: bool) {
        match (alone, self.pool.take()) {
            (true, None) => {
                let one = Pool::shared(NonZeroUsize::MIN);
                self.pool = Some(std::mem::replace(&mut self.compute.pool, one));
            }
            (false, Some(pool)) => self.compute.pool = pool,
            (_, unchanged) => self.pool = unchanged,
        }
    }

    fn cache_bytes_per_position(&self, shape: CacheShape) -> u64 {
        cache::slot_bytes(shape) as u64
    }

    fn matrix(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<CpuMatrix, BackendError> {
        weights::matrix(self.kernels, gguf, tensor, self.image(gguf))
    }

    fn vector(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<Box<[f32]>, BackendError> {
        weights::vector(gguf, tensor, self.image(gguf))
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

    fn gather<'a>(
        &self,
        count: usize,
        mut rows: impl Iterator<Item = (&'a CpuHidden, usize)>,
    ) -> Result<CpuHidden, BackendError> {
        let Some((x, row)) = rows.next() else {
            return Ok(CpuHidden::default());
        };
        let mut out = self.compute.hidden(count, x.width)?;
        let places = out.values.chunks_exact_mut(x.width);
        for (place, (x, row)) in places.zip(std::iter::once((x, row)).chain(rows)) {
            place.copy_from_slice(x.row(row));
        }
        Ok(out)
    }

    fn release(&self, x: CpuHidden) {
        self.compute.arena.give(x.values);
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

    fn linear<const N: usize>(
        &self,
        x: Input<'_, Self>,
        maps: [Linear<'_, Self>; N],
    ) -> Result<[CpuHidden; N], BackendError> {
        self.products.borrow_mut().linear(&self.compute, x, maps)
    }

    fn attention(
        &self,
        params: &AttentionParams<'_, Self>,
        qkv: [CpuHidden; 3],
        plan: &RowPlan,
        caches: &mut [CpuCache],
    ) -> Result<CpuHidden, BackendError> {
        attention::attend(&self.compute, params, qkv, plan, caches)
    }

    fn remember(
        &self,
        params: &AttentionParams<'_, Self>,
        kv: [CpuHidden; 2],
        plan: &RowPlan,
        caches: &mut [CpuCache],
    ) -> Result<(), BackendError> {
        attention::remember(&self.compute, params, kv, plan, caches);
        Ok(())
    }

    fn gated_mlp(
        &self,
        x: Input<'_, Self>,
        weights: [&CpuMatrix; 3],
        activation: Activation,
    ) -> Result<CpuHidden, BackendError> {
        let mut products = self.products.borrow_mut();
        products.gated_mlp(&self.compute, x, weights, activation)
    }

    fn add(
        &self,
        x: &mut CpuHidden,
        y: CpuHidden,
        norm: Option<Norm<'_, Self>>,
    ) -> Result<(), BackendError> {
        let isa = self.compute.isa;
        let norm = norm.map(|norm| norm::Norm::from(&norm));
        self.compute.fill(x, |row, x| match norm {
            Some(norm) => norm.add(isa, x, y.row(row)),
            None => isa.run(AddTo { x, y: y.row(row) }),
        });
        self.compute.arena.give(y.values);
        Ok(())
    }

    fn logits(
        &self,
        x: CpuHidden,
        norm: Norm<'_, Self>,
        rows: &[usize],
        head: &CpuMatrix,
        out: &mut Logits,
    ) -> Result<(), BackendError> {
        let values = out.reset(rows.len(), head.0.outputs())?;
        let mut products = self.products.borrow_mut();
        products.logits(&self.compute, &x, &norm, rows, &head.0, values);
        self.compute.arena.give(x.values);
        Ok(())
    }
}
