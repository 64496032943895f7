//! Random GGUF blocks of any format, with scales of a sensible size.

use crate::Format;
use half::{bf16, f16};

/// A small generator (splitmix64) that starts at a seed: the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is no iterator: it never ends"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Nearly normal, of variance 1.
    pub fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4)
            .map(|_| (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5)
            .sum();
        sum * 3f32.sqrt()
    }
}

/// So many weights in random blocks.
pub fn random_blocks(format: Format, weights: usize, random: &mut Random) -> Vec<u8> {
    let bytes = weights / format.block_weights() * format.block_bytes();
    let mut all: Vec<u8> = (0..bytes.div_ceil(8))
        .flat_map(|_| random.next().to_le_bytes())
        .take(bytes)
        .collect();
    set_scales(format, &mut all, random);
    all
}

/// Gives every block random scales: signed, of either size.
pub fn set_scales(format: Format, blocks: &mut [u8], random: &mut Random) {
    for block in blocks.chunks_exact_mut(format.block_bytes()) {
        for &place in places(format) {
            let value = random.normal() * 0.05;
            match format {
                Format::MXFP4 => block[place] = 118 + (random.next() % 8) as u8,
                _ => put(format, &mut block[place..], value),
            }
        }
    }
}

/// Multiplies the scales of every block by `factor`, as nearly as its format can.
pub fn scale_blocks(format: Format, blocks: &mut [u8], factor: f32) {
    for block in blocks.chunks_exact_mut(format.block_bytes()) {
        for &place in places(format) {
            let scale = &mut block[place..];
            match format {
                Format::MXFP4 => {
                    let exponent = i32::from(scale[0]) + factor.log2().round() as i32;
                    scale[0] = exponent.clamp(0, 254) as u8;
                }
                _ => put(format, scale, get(format, scale) * factor),
            }
        }
    }
}

/// Where a block has its scales.
fn places(format: Format) -> &'static [usize] {
    match format {
        Format::F32 | Format::F16 | Format::BF16 => &[0],
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 => &[0],
        Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K => &[0, 2],
        Format::IQ4NL | Format::IQ4XS | Format::IQ3S | Format::IQ3XXS => &[0],
        Format::IQ2S | Format::IQ2XS | Format::IQ2XXS | Format::IQ1S => &[0],
        Format::IQ1M => &[48],
        Format::TQ1_0 => &[52],
        Format::TQ2_0 => &[64],
        Format::MXFP4 => &[0],
        Format::Q2K => &[80, 82],
        Format::Q3K => &[108],
        Format::Q6K => &[208],
    }
}

/// Reads a scale from where it begins.
fn get(format: Format, scale: &[u8]) -> f32 {
    match format {
        Format::F32 => f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]),
        Format::BF16 => bf16::from_le_bytes([scale[0], scale[1]]).to_f32(),
        // A nibble on top of each of four words.
        Format::IQ1M => {
            let nibble = |k: usize| u16::from(scale[2 * k + 1] >> 4) << (4 * k);
            f16::from_bits((0..4).map(nibble).sum()).to_f32()
        }
        _ => f16::from_le_bytes([scale[0], scale[1]]).to_f32(),
    }
}

/// Writes a scale to where it begins.
fn put(format: Format, scale: &mut [u8], value: f32) {
    match format {
        Format::F32 => scale[..4].copy_from_slice(&value.to_le_bytes()),
        Format::BF16 => scale[..2].copy_from_slice(&bf16::from_f32(value).to_le_bytes()),
        Format::IQ1M => {
            let bits = f16::from_f32(value).to_bits();
            for k in 0..4 {
                let high = &mut scale[2 * k + 1];
                *high = *high & 15 | ((bits >> (4 * k)) as u8) << 4;
            }
        }
        _ => scale[..2].copy_from_slice(&f16::from_f32(value).to_le_bytes()),
    }
}
