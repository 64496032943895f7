//! Weights out of a model file, or out of a file of prepared weights.

use std::sync::Arc;

use candle_core::quantized::GgmlDType;

use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};
use tandem_kernels::{Format, Isa, PackedMatrix};
use tandem_prepared::Image;

use super::prepared;

/// Linear weights `[out, in]`, packed for this CPU's kernels.
#[derive(Debug)]
pub struct CpuMatrix(pub(super) PackedMatrix);

/// Takes a matrix out of the prepared file where that has it, or else reads and packs it for an instruction set.
pub(super) fn matrix(
    isa: Isa,
    gguf: &Gguf,
    tensor: &TensorInfo,
    image: Option<&Arc<Image>>,
) -> Result<CpuMatrix, BackendError> {
    match image.and_then(|image| prepared::matrix(image, tensor)) {
        Some(found) => Ok(CpuMatrix(found)),
        None => pack_matrix(isa, gguf, tensor).map(CpuMatrix),
    }
}

/// Reads and packs a matrix.
pub(super) fn pack_matrix(
    isa: Isa,
    gguf: &Gguf,
    tensor: &TensorInfo,
) -> Result<PackedMatrix, BackendError> {
    let (outputs, inputs) = extents(tensor);
    pack(isa, gguf, tensor, outputs, inputs)
}

/// Outputs and inputs of a matrix.
pub(super) fn extents(tensor: &TensorInfo) -> (usize, usize) {
    let inputs = tensor.shape.first().copied().unwrap_or(0);
    (tensor.shape.iter().skip(1).product(), inputs)
}

/// Takes a vector out of the prepared file where that has it, or else reads it.
pub(super) fn vector(
    gguf: &Gguf,
    tensor: &TensorInfo,
    image: Option<&Arc<Image>>,
) -> Result<Box<[f32]>, BackendError> {
    match image.and_then(|image| prepared::vector(image, tensor)) {
        Some(found) => Ok(found),
        None => read_vector(gguf, tensor),
    }
}

/// Reads a vector as floats.
pub(super) fn read_vector(gguf: &Gguf, tensor: &TensorInfo) -> Result<Box<[f32]>, BackendError> {
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

/// The kernels' name of a format, where they take it.
pub(super) fn format(format: GgmlDType) -> Option<Format> {
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
