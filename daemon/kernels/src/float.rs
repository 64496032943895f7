//! Products of the formats without an integer kernel: weights decoded block by block to floats, once for up to eight
//! rows, times the exact activations. The sum runs over 16 lanes in order of the inputs, then over the lanes.
#![expect(
    unsafe_code,
    reason = "results go through a window of raw pointers, with wider instructions where they exist"
)]

use super::{Format, Isa, OutView, QuantizedRows, decode, rows::CHUNK};
use half::{bf16, f16, slice::HalfFloatSliceExt};
use std::ops::Range;

const LANES: usize = 16;
/// Weights decoded at a time.
const PIECE: usize = decode::MOST;

/// Decodes a row of whole GGUF blocks.
pub(super) fn decode_row(format: Format, row: &[u8], into: &mut [f32]) {
    match format {
        Format::F32 => {
            for (into, &bytes) in into.iter_mut().zip(row.as_chunks().0) {
                *into = f32::from_le_bytes(bytes);
            }
        }
        Format::BF16 => {
            for (into, &bytes) in into.iter_mut().zip(row.as_chunks().0) {
                *into = bf16::from_le_bytes(bytes).to_f32();
            }
        }
        Format::F16 => {
            let mut halves = [f16::ZERO; PIECE];
            for (into, row) in into.chunks_mut(PIECE).zip(row.chunks(2 * PIECE)) {
                for (half, &bytes) in halves.iter_mut().zip(row.as_chunks().0) {
                    *half = f16::from_le_bytes(bytes);
                }
                halves[..into.len()].convert_to_f32_slice(into);
            }
        }
        _ => {
            let blocks = row.chunks_exact(format.block_bytes());
            for (block, into) in blocks.zip(into.chunks_exact_mut(format.block_weights())) {
                decode::decode(format, block, into);
            }
        }
    }
}

/// Multiplies all rows of `x` with `outputs`, which the window holds.
///
/// # Panics
/// If `x` kept no floats.
pub(super) fn multiply(
    isa: Isa,
    format: Format,
    weights: &[u8],
    x: &QuantizedRows,
    outputs: Range<usize>,
    out: &mut OutView<'_>,
) {
    let row_bytes = x.inputs() / format.block_weights() * format.block_bytes();
    let piece_bytes = PIECE / format.block_weights() * format.block_bytes();
    let add = adder(isa);
    for first in (0..x.rows()).step_by(CHUNK) {
        let rows = first..x.rows().min(first + CHUNK);
        for output in outputs.clone() {
            let mut sums = [[0f32; LANES]; CHUNK];
            let weights = &weights[output * row_bytes..][..row_bytes];
            for (piece, bytes) in weights.chunks(piece_bytes).enumerate() {
                let mut values = [0f32; PIECE];
                let len = bytes.len() / format.block_bytes() * format.block_weights();
                decode_row(format, bytes, &mut values[..len]);
                for (sums, row) in sums.iter_mut().zip(rows.clone()) {
                    let x = x
                        .floats(row)
                        .expect("rows keep their floats for matrices that take floats");
                    // SAFETY: `adder` chose it for instructions that the CPU has.
                    unsafe { add(&values[..len], &x[piece * PIECE..][..len], sums) };
                }
            }
            for (sums, row) in sums.iter().zip(rows.clone()) {
                // SAFETY: the window holds this element, as the caller checked.
                unsafe { out.at(row, output).write(sums.iter().sum()) };
            }
        }
    }
}

type Add = unsafe fn(&[f32], &[f32], &mut [f32; LANES]);

/// The same sum, compiled for wider vectors where the CPU has them.
fn adder(isa: Isa) -> Add {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::AvxVnni | Isa::Avx512Vnni => add_avx2,
        _ => add,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn add_avx2(a: &[f32], b: &[f32], sums: &mut [f32; LANES]) {
    add(a, b, sums);
}

#[inline(always)]
fn add(a: &[f32], b: &[f32], sums: &mut [f32; LANES]) {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += a * b;
    }
}
