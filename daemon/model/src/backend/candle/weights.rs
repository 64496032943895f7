//! Weights out of a model file.

use candle_core::Device;
use candle_core::quantized::{GgmlDType, QStorage, QTensor};
use tandem_kernels::Format;

use super::during;
use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};

/// Reads a tensor onto a device, in the file's own format.
pub(super) fn load(
    device: &Device,
    gguf: &Gguf,
    tensor: &TensorInfo,
) -> Result<QTensor, BackendError> {
    let dtype = ggml_type(tensor.format).ok_or_else(|| BackendError::Format {
        name: tensor.name.clone(),
        format: tensor.format,
    })?;
    let bytes = gguf.read_tensor(tensor)?;
    // GGUF lists the innermost extent first, candle last.
    let shape: Vec<usize> = tensor.shape.iter().rev().copied().collect();
    let storage = during("load", QStorage::from_data(bytes.into(), device, dtype))?;
    during("load", QTensor::new(storage, shape))
}

/// Candle's name of a format, if it has one.
fn ggml_type(format: Format) -> Option<GgmlDType> {
    Some(match format {
        Format::F32 => GgmlDType::F32,
        Format::F16 => GgmlDType::F16,
        Format::BF16 => GgmlDType::BF16,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q2K => GgmlDType::Q2K,
        Format::Q3K => GgmlDType::Q3K,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
        _ => return None,
    })
}
