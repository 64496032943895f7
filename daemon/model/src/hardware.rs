//! Which backend a device means.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tandem_prepared::Image;

#[cfg(feature = "metal")]
use crate::backend::candle::CandleBackend;
use crate::backend::cpu::{CpuBackend, Pool};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::{Backend, BackendError, CacheShape};
use crate::gguf::Gguf;
use crate::model::{Decoder, LanguageModel, ModelError};

/// What a pair runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// Our own kernels on so many threads; as many as the machine has fast cores serve best.
    Cpu(NonZeroUsize),
    /// The first Metal GPU; needs a build with the `metal` feature.
    Metal,
    /// The first CUDA GPU; needs a build with the `cuda` feature.
    Cuda,
}

/// A device's backend, before it is tied to a model.
#[derive(Debug)]
pub enum Hardware {
    /// Our own kernels on the CPU.
    Cpu(CpuBackend),
    /// A GPU by way of candle.
    #[cfg(feature = "metal")]
    Metal(CandleBackend),
    /// Our own kernels on a CUDA GPU.
    #[cfg(feature = "cuda")]
    Cuda(Box<CudaBackend>),
}

impl Hardware {
    /// Opens the device.
    ///
    /// # Errors
    /// Where there is none, or this build has no code for it.
    pub fn open(device: Device) -> Result<Self, BackendError> {
        match device {
            Device::Cpu(threads) => Ok(Self::Cpu(CpuBackend::on(Pool::shared(threads)))),
            #[cfg(feature = "metal")]
            Device::Metal => CandleBackend::metal().map(Self::Metal),
            #[cfg(not(feature = "metal"))]
            Device::Metal => Err(missing("metal")),
            #[cfg(feature = "cuda")]
            Device::Cuda => CudaBackend::new().map(|backend| Self::Cuda(Box::new(backend))),
            #[cfg(not(feature = "cuda"))]
            Device::Cuda => Err(missing("cuda")),
        }
    }

    /// Names it, such as `cpu`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cpu(backend) => backend.name(),
            #[cfg(feature = "metal")]
            Self::Metal(backend) => backend.name(),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => backend.name(),
        }
    }

    /// Whether a row's result is independent, to the bit, of its neighbours.
    #[must_use]
    pub fn batch_invariant(&self) -> bool {
        match self {
            Self::Cpu(backend) => backend.batch_invariant(),
            #[cfg(feature = "metal")]
            Self::Metal(backend) => backend.batch_invariant(),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => backend.batch_invariant(),
        }
    }

    /// Bytes that one position takes in a cache of this shape.
    #[must_use]
    pub fn cache_bytes_per_position(&self, shape: CacheShape) -> u64 {
        match self {
            Self::Cpu(backend) => backend.cache_bytes_per_position(shape),
            #[cfg(feature = "metal")]
            Self::Metal(backend) => backend.cache_bytes_per_position(shape),
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => backend.cache_bytes_per_position(shape),
        }
    }

    /// Loads a model onto the device, its weights out of the prepared file where there is one; see [`Decoder::load`].
    pub(crate) fn load(
        self,
        gguf: &Gguf,
        prepared: Option<Arc<Image>>,
        context_length: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Box<dyn LanguageModel>, ModelError> {
        Ok(match self {
            Self::Cpu(backend) => {
                let backend = backend.with_prepared(gguf.path(), prepared);
                Box::new(Decoder::load(backend, gguf, context_length, progress)?)
            }
            #[cfg(feature = "metal")]
            Self::Metal(backend) => {
                Box::new(Decoder::load(backend, gguf, context_length, progress)?)
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(backend) => {
                Box::new(Decoder::load(*backend, gguf, context_length, progress)?)
            }
        })
    }
}

/// A device whose backend was left out of this build.
#[cfg(not(all(feature = "metal", feature = "cuda")))]
fn missing(device: &'static str) -> BackendError {
    BackendError::Device {
        device,
        reason: format!(
            "this build has no backend for it; set engine.device = \"cpu\", or build with `--features {device}`"
        ),
    }
}
