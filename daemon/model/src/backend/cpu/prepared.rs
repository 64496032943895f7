//! The weights of a model file as this CPU's kernels want them, into a prepared file and out of it.
//!
//! Tensors of one dimension are vectors, kept as floats; all others are matrices, kept packed.

use std::sync::Arc;

use tandem_kernels::{PackedMatrix, SharedBytes, isa};
use tandem_prepared::{Image, StoreError, TensorEntry, Writer};

use super::weights::{extents, pack_matrix, read_vector};
use crate::backend::BackendError;
use crate::gguf::{Gguf, TensorInfo};

pub(crate) use tandem_kernels::LAYOUT_VERSION;

/// Why a tensor could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Weights(#[from] BackendError),
}

/// The instruction set that weights are prepared for.
pub(crate) fn isa_name() -> &'static str {
    isa().name()
}

/// Prepares a tensor; returns how many bytes of the model file it was.
pub(crate) fn put(gguf: &Gguf, tensor: &TensorInfo, writer: &Writer) -> Result<u64, PrepareError> {
    let (format, shape) = (format_name(tensor), shape(tensor));
    if tensor.shape.len() == 1 {
        let floats = read_vector(gguf, tensor)?;
        let bytes: Vec<u8> = floats.iter().flat_map(|x| x.to_le_bytes()).collect();
        writer.put(&tensor.name, &format, &shape, &bytes)?;
    } else {
        let packed = pack_matrix(isa(), gguf, tensor)?;
        writer.put(&tensor.name, &format, &shape, packed.as_bytes())?;
    }
    Ok(tensor.bytes)
}

/// Checks that a prepared file has every tensor of the model file, in its format and shape; otherwise names one that
/// is missing.
pub(crate) fn check<'a>(image: &Arc<Image>, gguf: &'a Gguf) -> Result<(), &'a str> {
    let is_missing = |tensor: &&TensorInfo| match tensor.shape.len() {
        1 => vector(image, tensor).is_none(),
        _ => matrix(image, tensor).is_none(),
    };
    match gguf.tensors().iter().find(is_missing) {
        Some(tensor) => Err(&tensor.name),
        None => Ok(()),
    }
}

/// The prepared matrix, over the file's own bytes; `None` where the file has not this tensor.
pub(super) fn matrix(image: &Arc<Image>, tensor: &TensorInfo) -> Option<PackedMatrix> {
    let range = find(image, tensor)?.range()?;
    let (outputs, inputs) = extents(tensor);
    let bytes = SharedBytes::new(Arc::clone(image) as _, range)?;
    PackedMatrix::from_packed(isa(), tensor.format, outputs, inputs, bytes).ok()
}

/// The prepared vector, copied; `None` where the file has not this tensor.
pub(super) fn vector(image: &Image, tensor: &TensorInfo) -> Option<Box<[f32]>> {
    let (floats, rest) = image.data(find(image, tensor)?)?.as_chunks::<4>();
    let fits = rest.is_empty() && [floats.len()] == *tensor.shape;
    fits.then(|| floats.iter().map(|x| f32::from_le_bytes(*x)).collect())
}

fn find<'a>(image: &'a Image, tensor: &TensorInfo) -> Option<&'a TensorEntry> {
    image
        .tensor(&tensor.name)
        .filter(|entry| entry.format == format_name(tensor) && entry.shape == shape(tensor))
}

fn format_name(tensor: &TensorInfo) -> String {
    format!("{:?}", tensor.format)
}

fn shape(tensor: &TensorInfo) -> Vec<u64> {
    tensor.shape.iter().map(|&extent| extent as u64).collect()
}
