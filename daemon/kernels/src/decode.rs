//! The values of blocks that have no integer kernel.

use super::{Format, codebook, lattice};
use half::f16;

/// The most weights in a block.
pub(super) const MOST: usize = 256;

/// Decodes one GGUF block of a format with blocks that [`Format::takes_floats`] names; `into` holds the block's weights.
pub(super) fn decode(format: Format, block: &[u8], into: &mut [f32]) {
    match format {
        Format::Q2K => q2_k(block, into),
        Format::Q3K => q3_k(block, into),
        Format::TQ1_0 => tq1_0(block, into),
        Format::TQ2_0 => tq2_0(block, into),
        Format::MXFP4 => mxfp4(block, into),
        _ => lattice::decode(format, block, into),
    }
}

fn q2_k(block: &[u8], into: &mut [f32]) {
    let (d, m) = (f16_at(block, 80), f16_at(block, 82));
    for (i, value) in into.iter_mut().enumerate() {
        let scale = block[i / 16];
        let quant = two_bits(&block[16..80], i);
        *value = d * f32::from(scale & 15) * f32::from(quant) - m * f32::from(scale >> 4);
    }
}

fn q3_k(block: &[u8], into: &mut [f32]) {
    let (d, packed) = (f16_at(block, 108), &block[96..108]);
    for (i, value) in into.iter_mut().enumerate() {
        let j = i / 16;
        let scale = packed[j % 8] >> (j / 8 * 4) & 15 | (packed[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
        let low = two_bits(&block[32..96], i);
        let high = block[i % 32] >> (i / 32) & 1;
        let quant = i16::from(low) - 4 * i16::from(high ^ 1);
        *value = d * (f32::from(scale) - 32.0) * f32::from(quant);
    }
}

/// Weights of −1, 0 and 1, five to a byte: 32 bytes, 16, then 4 with four each. A byte is a fraction of 256 in base 3;
/// times 3ⁿ, wrapped around, digit n comes first.
fn tq1_0(block: &[u8], into: &mut [f32]) {
    let d = f16_at(block, 52);
    let (first, rest) = into.split_at_mut(160);
    let (second, third) = rest.split_at_mut(80);
    for (bytes, into) in [
        (&block[..32], first),
        (&block[32..48], second),
        (&block[48..52], third),
    ] {
        let mut power = 1u8;
        for into in into.chunks_mut(bytes.len()) {
            for (value, &byte) in into.iter_mut().zip(bytes) {
                let digit = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
                *value = d * (f32::from(digit) - 1.0);
            }
            power = power.wrapping_mul(3);
        }
    }
}

/// Weights of −1, 0 and 1 in two bits each.
fn tq2_0(block: &[u8], into: &mut [f32]) {
    let d = f16_at(block, 64);
    for (i, value) in into.iter_mut().enumerate() {
        *value = d * (f32::from(two_bits(block, i)) - 1.0);
    }
}

/// A power of two, and 32 floats of four bits: the first half in low nibbles.
fn mxfp4(block: &[u8], into: &mut [f32]) {
    // Half of 2^(e − 127), since the values are doubled; the two smallest are subnormal.
    let scale = f32::from_bits(match u32::from(block[0]) {
        e @ 0..2 => 1 << (21 + e),
        e => (e - 1) << 23,
    });
    for (i, value) in into.iter_mut().enumerate() {
        let code = block[1 + i % 16] >> (i / 16 * 4) & 15;
        *value = scale * f32::from(codebook::E2M1[usize::from(code)]);
    }
}

/// Weight i of those kept as two bits: four parts of 32 share 32 bytes, twice.
fn two_bits(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3
}

fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}
