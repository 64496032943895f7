//! Weights out of a model file, or out of a file of prepared weights.

use std::sync::Arc;

use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};
use tandem_kernels::{Isa, PackedMatrix};
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
pub(in crate::backend) fn read_vector(
    gguf: &Gguf,
    tensor: &TensorInfo,
) -> Result<Box<[f32]>, BackendError> {
    let len = tensor.shape.iter().product();
    let packed = pack(Isa::Portable, gguf, tensor, 1, len)?;
    let mut values = vec![0.0; len].into_boxed_slice();
    packed.dequantize_row(0, &mut values);
    Ok(values)
}

/// Reads a matrix as the kernels of an instruction set want it.
pub(in crate::backend) fn pack(
    isa: Isa,
    gguf: &Gguf,
    tensor: &TensorInfo,
    outputs: usize,
    inputs: usize,
) -> Result<PackedMatrix, BackendError> {
    let bytes = gguf.read_tensor(tensor)?;
    PackedMatrix::pack_for(isa, tensor.format, outputs, inputs, &bytes).map_err(|source| {
        BackendError::Pack {
            name: tensor.name.clone(),
            source,
        }
    })
}
