//! Weights out of a model file.

use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};
use tandem_kernels::PackedMatrix;

/// Linear weights `[out, in]`, packed for this CPU's kernels.
#[derive(Debug)]
pub struct CpuMatrix(pub(super) PackedMatrix);

/// Reads and packs a matrix.
pub(super) fn matrix(gguf: &Gguf, tensor: &TensorInfo) -> Result<CpuMatrix, BackendError> {
    let inputs = tensor.shape.first().copied().unwrap_or(0);
    let outputs = tensor.shape.iter().skip(1).product();
    pack(gguf, tensor, outputs, inputs).map(CpuMatrix)
}

/// Reads a vector as floats.
pub(super) fn vector(gguf: &Gguf, tensor: &TensorInfo) -> Result<Box<[f32]>, BackendError> {
    let len = tensor.shape.iter().product();
    let packed = pack(gguf, tensor, 1, len)?;
    let mut values = vec![0.0; len].into_boxed_slice();
    packed.dequantize_row(0, &mut values);
    Ok(values)
}

fn pack(
    gguf: &Gguf,
    tensor: &TensorInfo,
    outputs: usize,
    inputs: usize,
) -> Result<PackedMatrix, BackendError> {
    let bytes = gguf.read_tensor(tensor)?;
    PackedMatrix::pack(tensor.format, outputs, inputs, &bytes).map_err(|source| {
        BackendError::Pack {
            name: tensor.name.clone(),
            source,
        }
    })
}
