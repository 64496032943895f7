//! The table of tensors: shapes, formats and where the bytes lie.

use std::collections::HashSet;

use tandem_kernels::Format;

use super::error::{Damage, GgufError};
use super::reader::Reader;

/// The largest models have some thousands of tensors.
pub(super) const COUNT_LIMIT: u64 = 1 << 20;
/// Least bytes of a table entry: length of its name, rank, one dimension, format, offset.
pub(super) const LEAST_BYTES: u64 = 8 + 4 + 8 + 4 + 8;
/// The format's own rule is 64.
const NAME_LIMIT_BYTES: u64 = 255;
const RANK_LIMIT: u32 = 4;

/// One tensor of a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// As in GGUF, innermost dimension first: a linear layer is `[in, out]`, and candle's order is the reverse.
    pub shape: Vec<usize>,
    /// How its weights are stored.
    pub format: Format,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Size of its data.
    pub bytes: u64,
}

impl TensorInfo {
    /// Number of weights.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&n| n as u64).product()
    }
}

/// Reads the table; offsets are still relative to the start of the data.
pub(super) fn read_table(r: &mut Reader<'_>, count: u64) -> Result<Vec<TensorInfo>, GgufError> {
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for _ in 0..count {
        let tensor = read_entry(r)?;
        if !names.insert(tensor.name.clone()) {
            return Err(r.damaged(Damage::Duplicate {
                what: "tensor",
                name: tensor.name,
            }));
        }
        tensors.push(tensor);
    }
    Ok(tensors)
}

fn read_entry(r: &mut Reader<'_>) -> Result<TensorInfo, GgufError> {
    let name = r.name(NAME_LIMIT_BYTES, "a tensor name")?;
    let what = format!("the table entry of tensor `{name}`");
    let rank = r.u32(&what)?;
    if rank > RANK_LIMIT {
        let what = format!("the rank of tensor `{name}`");
        let (value, limit) = (rank.into(), RANK_LIMIT.into());
        return Err(r.damaged(Damage::TooMany { what, value, limit }));
    }
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(r.u64(&what)?);
    }
    let number = r.u32(&what)?;
    let offset = r.u64(&what)?;
    let format = Format::from_number(number).ok_or_else(|| GgufError::UnsupportedFormat {
        path: r.path().to_owned(),
        name: name.clone(),
        number,
    })?;
    let bytes = size_bytes(&name, &shape, format).map_err(|damage| r.damaged(damage))?;
    let shape = shape.iter().map(|&n| n as usize).collect();
    Ok(TensorInfo {
        name,
        shape,
        format,
        offset,
        bytes,
    })
}

fn size_bytes(name: &str, shape: &[u64], format: Format) -> Result<u64, Damage> {
    let impossible = || Damage::Shape {
        name: name.to_owned(),
        shape: shape.to_vec(),
    };
    let row = *shape.first().ok_or_else(impossible)?;
    let block = format.block_weights() as u64;
    if !row.is_multiple_of(block) {
        return Err(Damage::PartialBlock {
            name: name.to_owned(),
            row,
            block,
        });
    }
    let elements = shape
        .iter()
        .try_fold(1_u64, |product, &n| product.checked_mul(n))
        .filter(|&n| n > 0 && usize::try_from(n).is_ok())
        .ok_or_else(impossible)?;
    (elements / block)
        .checked_mul(format.block_bytes() as u64)
        .ok_or_else(impossible)
}

/// Turns relative offsets into file offsets, each tensor inside the file and apart from every other.
pub(super) fn place(
    r: &Reader<'_>,
    mut tensors: Vec<TensorInfo>,
    data_start: u64,
    alignment: u64,
) -> Result<Vec<TensorInfo>, GgufError> {
    let file_bytes = r.file_bytes();
    for tensor in &mut tensors {
        let (name, offset, bytes) = (&tensor.name, tensor.offset, tensor.bytes);
        if !offset.is_multiple_of(alignment) {
            let damage = Damage::Misaligned {
                name: name.clone(),
                offset,
                alignment,
            };
            return Err(r.damaged(damage));
        }
        let start = data_start.checked_add(offset);
        let end = start.and_then(|start| start.checked_add(bytes));
        if end.is_none_or(|end| end > file_bytes) {
            let offset = start.unwrap_or(offset);
            let damage = Damage::TensorBeyondEnd {
                name: name.clone(),
                offset,
                bytes,
                file_bytes,
            };
            return Err(r.damaged(damage));
        }
        tensor.offset += data_start;
    }
    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| tensor.offset);
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].bytes > pair[1].offset {
            let (first, second) = (pair[0].name.clone(), pair[1].name.clone());
            return Err(r.damaged(Damage::Overlap {
                first,
                second,
                offset: pair[1].offset,
            }));
        }
    }
    Ok(tensors)
}
