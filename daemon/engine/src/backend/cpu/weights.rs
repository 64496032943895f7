//! Weights out of a model file.

use candle_core::quantized::GgmlDType;

use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};
use tandem_kernels::{Format, Isa, PackedMatrix};

/// Linear weights `[out, in]`, packed for this CPU's kernels.
#[derive(Debug)]
pub struct CpuMatrix(pub(super) PackedMatrix);

/// Reads a matrix and packs it for an instruction set.
pub(super) fn matrix(
    isa: Isa,
    gguf: &Gguf,
    tensor: &TensorInfo,
) -> Result<CpuMatrix, BackendError> {
    let inputs = tensor.shape.first().copied().unwrap_or(0);
    let outputs = tensor.shape.iter().skip(1).product();
    pack(isa, gguf, tensor, outputs, inputs).map(CpuMatrix)
}

/// Reads a vector as floats.
pub(super) fn vector(gguf: &Gguf, tensor: &TensorInfo) -> Result<Box<[f32]>, BackendError> {
    let len = tensor.shape.iter().product();
    let packed = pack(Isa::Portable, gguf, tensor, 1, len)?;
    let mut values = vec![0.0; len].into_boxed_slice();
    packed.dequantize_row(0, &mut values);
    Ok(values)
}

fn pack(
    isa: Isa,
    gguf: &Gguf,
    tensor: &TensorInfo,
    outputs: usize,
    inputs: usize,
) -> Result<PackedMatrix, BackendError> {
    let format = format(tensor.format).ok_or_else(|| {
        BackendError::Unsupported(format!(
            "the format {:?} of the tensor `{}`; the cpu backend takes {:?}",
            tensor.format,
            tensor.name,
            Format::ALL
        ))
    })?;
    let bytes = gguf.read_tensor(tensor)?;
    PackedMatrix::pack_for(isa, format, outputs, inputs, &bytes).map_err(|source| {
        BackendError::Pack {
            name: tensor.name.clone(),
            source,
        }
    })
}

fn format(format: GgmlDType) -> Option<Format> {
    Some(match format {
        GgmlDType::F32 => Format::F32,
        GgmlDType::F16 => Format::F16,
        GgmlDType::BF16 => Format::BF16,
        GgmlDType::Q4_0 => Format::Q4_0,
        GgmlDType::Q4_1 => Format::Q4_1,
        GgmlDType::Q5_0 => Format::Q5_0,
        GgmlDType::Q5_1 => Format::Q5_1,
        GgmlDType::Q8_0 => Format::Q8_0,
        GgmlDType::Q2K => Format::Q2K,
        GgmlDType::Q3K => Format::Q3K,
        GgmlDType::Q4K => Format::Q4K,
        GgmlDType::Q5K => Format::Q5K,
        GgmlDType::Q6K => Format::Q6K,
        GgmlDType::Q8_1 | GgmlDType::Q8K => return None,
    })
}
