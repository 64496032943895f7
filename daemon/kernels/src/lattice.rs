//! Blocks of the IQ1, IQ2 and IQ3 formats: eight weights at a time are a scale times points of a codebook, with signs.

use super::{Format, codebook};
use half::f16;

/// Eight weights.
struct Eight {
    scale: f32,
    values: [f32; 8],
    /// Bit k set: weight k is negative.
    minus: u8,
}

/// Decodes one block of 256 weights.
pub(super) fn decode(format: Format, block: &[u8], into: &mut [f32]) {
    let d = match format {
        // In the highest nibbles of the four words of scales.
        Format::IQ1M => (0..4)
            .map(|k| u16_at(block, 48 + 2 * k) >> 12 << (4 * k))
            .sum(),
        _ => u16_at(block, 0),
    };
    let d = f16::from_bits(d).to_f32();
    for (i, into) in into.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let eight = match format {
            Format::IQ1S => iq1_s(d, block, i),
            Format::IQ1M => iq1_m(d, block, i),
            Format::IQ2XXS => iq2_xxs(d, block, i),
            Format::IQ2XS => iq2_xs(d, block, i),
            Format::IQ2S => iq2_s(d, block, i),
            Format::IQ3XXS => iq3_xxs(d, block, i),
            _ => iq3_s(d, block, i),
        };
        for (k, into) in into.iter_mut().enumerate() {
            let value = eight.scale * eight.values[k];
            *into = if eight.minus >> k & 1 == 1 {
                -value
            } else {
                value
            };
        }
    }
}

// Below, i counts the eights of a block; four of them, a group, share a scale or two.

/// d; low bytes of points; per group a word of 3 high bits per point, 3 bits of scale and the sign of the shift.
fn iq1_s(d: f32, block: &[u8], i: usize) -> Eight {
    let word = u16_at(block, 34 + 2 * (i / 4));
    let high = usize::from(word >> (3 * (i % 4)) & 7);
    Eight {
        scale: d * f32::from(2 * (word >> 12 & 7) + 1),
        values: shifted(usize::from(block[2 + i]) | high << 8, word >> 15 == 1),
        minus: 0,
    }
}

/// Low bytes of points; per point a nibble of 3 high bits and the sign of the shift; 3-bit scales per two points.
fn iq1_m(d: f32, block: &[u8], i: usize) -> Eight {
    let nibble = block[32 + i / 2] >> (4 * (i % 2));
    let scale = u16_at(block, 48 + i / 8 * 2) >> (3 * (i / 2 % 4)) & 7;
    let high = usize::from(nibble & 7);
    Eight {
        scale: d * f32::from(2 * scale + 1),
        values: shifted(usize::from(block[i]) | high << 8, nibble & 8 != 0),
        minus: 0,
    }
}

/// A point of IQ1 with an eighth added to all its values, or taken off.
fn shifted(number: usize, down: bool) -> [f32; 8] {
    let shift = if down { -0.125 } else { 0.125 };
    codebook::iq1_s(number).map(|value| value + shift)
}

/// d; per group four points, then a word of four times 7 signs and 4 bits of scale.
fn iq2_xxs(d: f32, block: &[u8], i: usize) -> Eight {
    let group = 2 + i / 4 * 8;
    let word = u32_at(block, group + 4);
    Eight {
        scale: quarter(d, (word >> 28) as u8),
        values: codebook::iq2_xxs(block[group + i % 4].into()),
        minus: codebook::even_signs(word >> (7 * (i % 4))),
    }
}

/// d; words of a 9-bit point and 7 signs; 4-bit scales per two points.
fn iq2_xs(d: f32, block: &[u8], i: usize) -> Eight {
    let word = u16_at(block, 2 + 2 * i);
    Eight {
        scale: quarter(d, block[66 + i / 4] >> (4 * (i / 2 % 2)) & 15),
        values: codebook::iq2_xs((word & 511).into()),
        minus: codebook::even_signs(u32::from(word >> 9)),
    }
}

/// d; low bytes of points; signs; 2 high bits per point; 4-bit scales per two points.
fn iq2_s(d: f32, block: &[u8], i: usize) -> Eight {
    let high = usize::from(block[66 + i / 4] >> (2 * (i % 4)) & 3);
    Eight {
        scale: quarter(d, block[74 + i / 4] >> (4 * (i / 2 % 2)) & 15),
        values: codebook::iq2_s(usize::from(block[2 + i]) | high << 8),
        minus: block[34 + i],
    }
}

fn quarter(d: f32, scale: u8) -> f32 {
    d * (0.5 + f32::from(scale)) * 0.25
}

/// d; points of four; per group a word of four times 7 signs and 4 bits of scale.
fn iq3_xxs(d: f32, block: &[u8], i: usize) -> Eight {
    let word = u32_at(block, 66 + i / 4 * 4);
    Eight {
        scale: d * (0.5 + f32::from((word >> 28) as u8)) * 0.5,
        values: codebook::iq3_xxs([block[2 + 2 * i].into(), block[3 + 2 * i].into()]),
        minus: codebook::even_signs(word >> (7 * (i % 4))),
    }
}

/// d; low bytes of points of four; their ninth bits; signs; 4-bit scales per group.
fn iq3_s(d: f32, block: &[u8], i: usize) -> Eight {
    let number = |k: usize| {
        let high = usize::from(block[66 + i / 4] >> (2 * (i % 4) + k) & 1);
        usize::from(block[2 + 2 * i + k]) | high << 8
    };
    Eight {
        scale: d * f32::from(1 + 2 * (block[106 + i / 8] >> (4 * (i / 4 % 2)) & 15)),
        values: codebook::iq3_s([number(0), number(1)]),
        minus: block[74 + i],
    }
}

fn u16_at(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn u32_at(block: &[u8], at: usize) -> u32 {
    u32::from(u16_at(block, at)) | u32::from(u16_at(block, at + 2)) << 16
}
