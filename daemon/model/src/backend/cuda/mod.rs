//! The CUDA backend: our own kernels on NVIDIA GPUs.
//!
//! Weights stay quantized and are unpacked to halves on their way into the matrix units, so that a step of 8 rows reads
//! what a step of one row reads. Operations are recorded, and started together where the host needs logits: as one graph
//! where the same step comes often. A row's result does not depend on the rows computed with it: every sum has
//! one order, whatever the shape of the launch.

mod attention;
mod cache;
mod counters;
mod driver;
mod head;
mod kernels;
mod memory;
mod module;
mod pinned;
mod products;
mod recorder;
mod rows;
mod schedule;
mod weights;

use std::cell::RefCell;
use std::sync::Arc;

pub use cache::CudaCache;
use counters::Counters;
use driver::{Gpu, bytes};
use head::Spare;
use kernels::Kernels;
use memory::{Buffer, Pool};
pub use recorder::Options;
use recorder::Recorder;
pub use rows::CudaHidden;
pub use weights::{CudaMatrix, CudaVector};

use super::{
    Activation, AttentionParams, Backend, BackendError, CacheShape, Input, Linear, Logits, Norm,
    RowPlan,
};
use crate::TokenId;
use crate::gguf::{Gguf, TensorInfo};

/// Cosines and sines on the device, `[positions, head_dim / 2]`, f32.
#[derive(Debug)]
pub struct CudaRope {
    cos: Buffer,
    sin: Buffer,
}

/// See the module.
#[derive(Debug)]
pub struct CudaBackend {
    recorder: RefCell<Recorder>,
    scheduled: RefCell<Option<schedule::Known>>,
    counters: RefCell<Counters>,
    /// Where logits arrive.
    spare: Arc<Spare>,
    pool: Arc<Pool>,
    /// Dropped after the recorder, which knows them.
    kernels: Arc<Kernels>,
    gpu: Arc<Gpu>,
}

impl CudaBackend {
    /// Computes on the first CUDA device.
    ///
    /// # Errors
    /// Where there is none, or it is too old.
    pub fn new() -> Result<Self, BackendError> {
        Self::with(Options {
            graphs: true,
            overlap: true,
        })
    }

    /// The same, with kernels started as told: what each way saves is to be measured.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(options: Options) -> Result<Self, BackendError> {
        let gpu = Gpu::open()?;
        Ok(Self {
            recorder: RefCell::new(Recorder::new(&gpu, options)?),
            scheduled: RefCell::new(None),
            counters: RefCell::default(),
            spare: Arc::default(),
            pool: Pool::new(&gpu),
            kernels: Kernels::shared(&gpu)?,
            gpu,
        })
    }

    /// Passes on what an operation of a pass came to. After an error the pass is over: what it recorded is forgotten, because
    /// the memory that it works on is handed out again.
    fn ended<T>(&self, result: Result<T, BackendError>) -> Result<T, BackendError> {
        if result.is_err() {
            self.recorder.borrow_mut().forget();
        }
        result
    }
}

impl Backend for CudaBackend {
    type Matrix = CudaMatrix;
    type Vector = CudaVector;
    type Rope = CudaRope;
    type Hidden = CudaHidden;
    type Cache = CudaCache;

    fn name(&self) -> &'static str {
        "cuda"
    }

    fn batch_invariant(&self) -> bool {
        true
    }

    fn rehearsing(&mut self, on: bool) {
        self.recorder.borrow_mut().rehearsing(on);
    }

    fn preparations(&self) -> u64 {
        self.recorder.borrow().preparations() + self.gpu.allocations()
    }

    fn cache_bytes_per_position(&self, shape: CacheShape) -> u64 {
        (4 * shape.layers * shape.kv_heads * shape.head_dim) as u64
    }

    fn matrix(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<CudaMatrix, BackendError> {
        self.load_matrix(gguf, tensor)
    }

    fn vector(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<CudaVector, BackendError> {
        self.load_vector(gguf, tensor)
    }

    fn rope(&self, frequencies: &[f32], positions: usize) -> Result<CudaRope, BackendError> {
        let angles = (0..positions)
            .flat_map(|position| frequencies.iter().map(move |f| position as f32 * f));
        let (cos, sin): (Vec<f32>, Vec<f32>) =
            angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        Ok(CudaRope {
            cos: Buffer::holding(&self.gpu, bytes(&cos))?,
            sin: Buffer::holding(&self.gpu, bytes(&sin))?,
        })
    }

    fn cache(&self, shape: CacheShape) -> Result<CudaCache, BackendError> {
        self.new_cache(shape, 1)
    }

    fn reserve(&self, cache: &mut CudaCache, positions: usize) -> Result<(), BackendError> {
        if positions > cache.capacity {
            // No more than is needed: requests were let in by what their positions take.
            *cache = self.copied(cache, cache.capacity, positions)?;
        }
        Ok(())
    }

    fn keep(
        &self,
        cache: &mut CudaCache,
        from: usize,
        offsets: &[usize],
    ) -> Result<(), BackendError> {
        self.kept(cache, from, offsets)
    }

    fn fork(&self, cache: &CudaCache, positions: usize) -> Result<CudaCache, BackendError> {
        self.copied(cache, positions, positions)
    }

    fn cache_bytes(&self, cache: &CudaCache) -> u64 {
        cache.data.bytes as u64
    }

    fn gather<'a>(
        &self,
        count: usize,
        rows: impl Iterator<Item = (&'a CudaHidden, usize)>,
    ) -> Result<CudaHidden, BackendError> {
        self.ended(self.gathered(count, rows))
    }

    fn release(&self, _x: CudaHidden) {}

    fn embed(
        &self,
        table: &CudaMatrix,
        tokens: &[TokenId],
        scale: f32,
    ) -> Result<CudaHidden, BackendError> {
        self.ended(self.embedded(table, tokens, scale))
    }

    fn linear<const N: usize>(
        &self,
        x: Input<'_, Self>,
        maps: [Linear<'_, Self>; N],
    ) -> Result<[CudaHidden; N], BackendError> {
        let maps = maps.map(|map| (map.weight, map.bias));
        let outs = self.taken(x).and_then(|x| self.multiply(&x, &maps));
        Ok(self.ended(outs)?.try_into().expect("one result per map"))
    }

    fn attention(
        &self,
        params: &AttentionParams<'_, Self>,
        qkv: [CudaHidden; 3],
        plan: &RowPlan,
        caches: &mut [CudaCache],
    ) -> Result<CudaHidden, BackendError> {
        self.ended(self.attended(params, qkv, plan, caches))
    }

    fn remember(
        &self,
        params: &AttentionParams<'_, Self>,
        [keys, values]: [CudaHidden; 2],
        plan: &RowPlan,
        caches: &mut [CudaCache],
    ) -> Result<(), BackendError> {
        let stored = self.stored(params, None, [&keys, &values], plan, caches);
        self.ended(stored.map(|_| ()))
    }

    fn gated_mlp(
        &self,
        x: Input<'_, Self>,
        [gate, up, down]: [&CudaMatrix; 3],
        activation: Activation,
    ) -> Result<CudaHidden, BackendError> {
        let out = self
            .taken(x)
            .and_then(|x| self.gated(&x, [gate, up], activation))
            .and_then(|inner| self.multiply(&inner, &[(down, None)]));
        let [out] = <[CudaHidden; 1]>::try_from(self.ended(out)?).expect("one result per map");
        Ok(out)
    }

    fn add(
        &self,
        x: &mut CudaHidden,
        y: CudaHidden,
        norm: Option<Norm<'_, Self>>,
    ) -> Result<(), BackendError> {
        self.add_later(x, y, norm);
        Ok(())
    }

    fn logits(
        &self,
        x: CudaHidden,
        norm: Norm<'_, Self>,
        rows: &[usize],
        head: &CudaMatrix,
        out: &mut Logits,
    ) -> Result<(), BackendError> {
        self.ended(self.said(&x, &norm, rows, head, out))
    }
}
