//! The candle backend: Metal and CUDA by candle's kernels, and the CPU as the readable reference.
//!
//! On the CPU every row goes through its products alone, because candle picks other kernels for other row counts; a
//! row's result is then the same to the bit whatever it is computed with. It costs nothing there: candle's quantized
//! product takes its rows one after another anyway. On a GPU the rows go together and only nearly agree.

mod attention;
mod cache;
mod input;
mod rope;
mod weights;

use candle_core::quantized::QMatMul;
use candle_core::{DType, Device, Module, Tensor};

pub use cache::CandleCache;
use input::{gathered, rms_norm, taken};
pub use rope::CandleRope;

use super::{
    Activation, AttentionParams, Backend, BackendError, CacheShape, Input, Linear, Logits, Norm,
    RowPlan,
};
use crate::TokenId;
use crate::gguf::{Gguf, TensorInfo};

/// See the module.
#[derive(Debug)]
pub struct CandleBackend {
    device: Device,
}

/// Linear weights and, for the embedding, the same bytes as a table.
#[derive(Debug)]
pub struct CandleMatrix(QMatMul);

/// Names the operation in which candle failed.
fn during<T>(operation: &'static str, result: candle_core::Result<T>) -> Result<T, BackendError> {
    result.map_err(|source| BackendError::Operation {
        operation,
        source: Box::new(source),
    })
}

impl CandleBackend {
    /// Computes on the CPU.
    #[must_use]
    pub fn cpu() -> Self {
        Self {
            device: Device::Cpu,
        }
    }

    /// Computes on the first Metal device.
    ///
    /// # Errors
    /// Where there is none, or this build has no `metal` feature.
    pub fn metal() -> Result<Self, BackendError> {
        Device::new_metal(0)
            .map(|device| Self { device })
            .map_err(|error| BackendError::Device {
                device: "metal",
                reason: error.to_string(),
            })
    }

    /// Computes on the first CUDA device.
    ///
    /// # Errors
    /// Where there is none, or this build has no `cuda` feature.
    pub fn cuda() -> Result<Self, BackendError> {
        Device::new_cuda(0)
            .map(|device| Self { device })
            .map_err(|error| BackendError::Device {
                device: "cuda",
                reason: error.to_string(),
            })
    }

    fn cache_dtype(&self) -> DType {
        // The reference keeps what it computed; a GPU reads half as much.
        if self.device.is_cpu() {
            DType::F32
        } else {
            DType::F16
        }
    }

    /// `x · wᵀ`; see the module on rows.
    fn multiply(&self, x: &Tensor, weight: &QMatMul) -> candle_core::Result<Tensor> {
        let rows = x.dim(0)?;
        if rows == 1 || !self.device.is_cpu() {
            return weight.forward(x);
        }
        let rows = (0..rows)
            .map(|row| weight.forward(&x.narrow(0, row, 1)?))
            .collect::<candle_core::Result<Vec<_>>>()?;
        Tensor::cat(&rows, 0)
    }
}

impl Backend for CandleBackend {
    type Matrix = CandleMatrix;
    type Vector = Tensor;
    type Rope = CandleRope;
    type Hidden = Tensor;
    type Cache = CandleCache;

    fn name(&self) -> &'static str {
        match self.device {
            Device::Cpu => "cpu (candle)",
            Device::Metal(_) => "metal (candle)",
            Device::Cuda(_) => "cuda (candle)",
        }
    }

    fn batch_invariant(&self) -> bool {
        self.device.is_cpu()
    }

    fn cache_bytes_per_position(&self, shape: CacheShape) -> u64 {
        2 * (shape.layers * shape.kv_heads * shape.head_dim * self.cache_dtype().size_in_bytes())
            as u64
    }

    fn matrix(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<CandleMatrix, BackendError> {
        let tensor = weights::load(&self.device, gguf, tensor)?;
        during("load", QMatMul::from_qtensor(tensor)).map(CandleMatrix)
    }

    fn vector(&self, gguf: &Gguf, tensor: &TensorInfo) -> Result<Tensor, BackendError> {
        let tensor = weights::load(&self.device, gguf, tensor)?;
        during("load", tensor.dequantize(&self.device))
    }

    fn rope(&self, frequencies: &[f32], positions: usize) -> Result<CandleRope, BackendError> {
        CandleRope::new(frequencies, positions, &self.device)
    }

    fn cache(&self, shape: CacheShape) -> Result<CandleCache, BackendError> {
        during(
            "cache",
            CandleCache::new(shape, self.cache_dtype(), &self.device),
        )
    }

    fn reserve(&self, cache: &mut CandleCache, positions: usize) -> Result<(), BackendError> {
        during("cache", cache.reserve(positions))
    }

    fn keep(
        &self,
        cache: &mut CandleCache,
        from: usize,
        offsets: &[usize],
    ) -> Result<(), BackendError> {
        during("cache", cache.keep(from, offsets))
    }

    fn fork(&self, cache: &CandleCache, positions: usize) -> Result<CandleCache, BackendError> {
        during("cache", cache.fork(positions))
    }

    fn cache_bytes(&self, cache: &CandleCache) -> u64 {
        cache.bytes()
    }

    fn gather<'a>(
        &self,
        _count: usize,
        rows: impl Iterator<Item = (&'a Tensor, usize)>,
    ) -> Result<Tensor, BackendError> {
        during("gather", gathered(rows))
    }

    fn release(&self, _x: Tensor) {}

    fn embed(
        &self,
        table: &CandleMatrix,
        tokens: &[TokenId],
        scale: f32,
    ) -> Result<Tensor, BackendError> {
        during("embedding", {
            Tensor::new(tokens, &self.device).and_then(|tokens| {
                let rows = table.0.embedding(&tokens)?.to_dtype(DType::F32)?;
                if scale == 1.0 {
                    Ok(rows)
                } else {
                    rows.affine(f64::from(scale), 0.0)
                }
            })
        })
    }

    fn linear<const N: usize>(
        &self,
        x: Input<'_, Self>,
        maps: [Linear<'_, Self>; N],
    ) -> Result<[Tensor; N], BackendError> {
        let x = taken(x)?;
        let mut results = Vec::with_capacity(N);
        for map in &maps {
            let product = during("linear", self.multiply(&x, &map.weight.0))?;
            results.push(match map.bias {
                Some(bias) => during("linear", product.broadcast_add(bias))?,
                None => product,
            });
        }
        Ok(results.try_into().expect("one result per map"))
    }

    fn attention(
        &self,
        params: &AttentionParams<'_, Self>,
        [mut queries, mut keys, values]: [Tensor; 3],
        plan: &RowPlan,
        caches: &mut [CandleCache],
    ) -> Result<Tensor, BackendError> {
        if let Some([query_norm, key_norm]) = &params.head_norms {
            queries = rms_norm(&queries, query_norm)?;
            keys = rms_norm(&keys, key_norm)?;
        }
        let qkv = [queries, keys, values];
        during("attention", attention::attend(params, &qkv, plan, caches))
    }

    fn remember(
        &self,
        params: &AttentionParams<'_, Self>,
        kv: [Tensor; 2],
        plan: &RowPlan,
        caches: &mut [CandleCache],
    ) -> Result<(), BackendError> {
        attention::remember(params, kv, plan, caches)
    }

    fn gated_mlp(
        &self,
        x: Input<'_, Self>,
        [gate, up, down]: [&CandleMatrix; 3],
        activation: Activation,
    ) -> Result<Tensor, BackendError> {
        let x = taken(x)?;
        during("mlp", {
            self.multiply(&x, &gate.0).and_then(|gate| {
                let gate = match activation {
                    Activation::Silu => candle_nn::ops::silu(&gate)?,
                    Activation::Gelu => gate.gelu()?,
                };
                self.multiply(&(gate * self.multiply(&x, &up.0)?)?, &down.0)
            })
        })
    }

    fn add(
        &self,
        x: &mut Tensor,
        y: Tensor,
        norm: Option<Norm<'_, Self>>,
    ) -> Result<(), BackendError> {
        let y = match norm {
            Some(norm) => rms_norm(&y, &norm)?,
            None => y,
        };
        *x = during("add", &*x + y)?;
        Ok(())
    }

    fn logits(
        &self,
        x: Tensor,
        norm: Norm<'_, Self>,
        rows: &[usize],
        head: &CandleMatrix,
        out: &mut Logits,
    ) -> Result<(), BackendError> {
        if rows.is_empty() {
            out.reset(0, 0)?;
            return Ok(());
        }
        let logits = during("logits", {
            let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
            Tensor::new(rows, &self.device).and_then(|rows| x.index_select(&rows, 0))
        })
        .and_then(|x| rms_norm(&x, &norm))
        .and_then(|x| during("logits", self.multiply(&x, &head.0)))?;
        let values = during(
            "logits",
            logits.flatten_all().and_then(|x| x.to_vec1::<f32>()),
        )?;
        out.reset(rows.len(), values.len() / rows.len())?
            .copy_from_slice(&values);
        Ok(())
    }
}
