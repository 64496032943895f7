//! GGUF blocks taken apart into their fields, and their meaning in numbers. Everything else builds on this reading.

use super::Format;
use half::{bf16, f16};

/// The most weights in a block.
pub(super) const MOST: usize = 256;

/// One block of an integer format: `weight = scale · quant − minimum`, both from the fields below.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// The f16 scale's bits.
    pub(super) d: u16,
    /// The f16 minimum's bits: added in the plain formats, the scale of subtracted minima in the K formats.
    pub(super) m: u16,
    /// Scales of sub-blocks: u6 per 32 (Q4_K, Q5_K), i8 per 16 (Q6_K).
    pub(super) scales: [u8; 16],
    /// Minima of sub-blocks of 32: u6.
    pub(super) minima: [u8; 8],
    /// Quants: unsigned, or i8 bits in Q8_0.
    pub(super) quants: [u8; MOST],
}

impl Fields {
    pub(super) const ZERO: Fields = Fields {
        d: 0,
        m: 0,
        scales: [0; 16],
        minima: [0; 8],
        quants: [0; MOST],
    };

    /// Takes a block of one of the formats that [`Format::takes_floats`] does not name apart.
    pub(super) fn read(format: Format, block: &[u8]) -> Fields {
        let mut f = Fields::ZERO;
        let u16_at = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        match format {
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 => {
                let has_minimum = matches!(format, Format::Q4_1 | Format::Q5_1);
                let five = matches!(format, Format::Q5_0 | Format::Q5_1);
                f.d = u16_at(0);
                let mut at = 2;
                if has_minimum {
                    f.m = u16_at(2);
                    at = 4;
                }
                let mut high = 0;
                if five {
                    high = u32::from_le_bytes([
                        block[at],
                        block[at + 1],
                        block[at + 2],
                        block[at + 3],
                    ]);
                    at += 4;
                }
                for i in 0..16 {
                    let bit = |k: usize| ((high >> k & 1) << 4) as u8;
                    f.quants[i] = block[at + i] & 15 | bit(i);
                    f.quants[i + 16] = block[at + i] >> 4 | bit(i + 16);
                }
            }
            Format::Q8_0 => {
                f.d = u16_at(0);
                f.quants[..32].copy_from_slice(&block[2..34]);
            }
            Format::Q4K | Format::Q5K => {
                (f.d, f.m) = (u16_at(0), u16_at(2));
                let packed = &block[4..16];
                for j in 0..4 {
                    (f.scales[j], f.minima[j]) = (packed[j] & 63, packed[j + 4] & 63);
                    f.scales[j + 4] = packed[j + 8] & 15 | packed[j] >> 6 << 4;
                    f.minima[j + 4] = packed[j + 8] >> 4 | packed[j + 4] >> 6 << 4;
                }
                let (high, low) = if format == Format::Q5K {
                    block[16..].split_at(32)
                } else {
                    (&[][..], &block[16..])
                };
                for (i, quant) in f.quants.iter_mut().enumerate() {
                    let (sub, k) = (i / 32, i % 32);
                    let bit = high.get(k).map_or(0, |byte| (byte >> sub & 1) << 4);
                    *quant = low[sub / 2 * 32 + k] >> (sub % 2 * 4) & 15 | bit;
                }
            }
            Format::Q6K => {
                f.scales.copy_from_slice(&block[192..208]);
                f.d = u16_at(208);
                for (i, quant) in f.quants.iter_mut().enumerate() {
                    let (half, part, k) = (i / 128, i % 128 / 32, i % 32);
                    let low = block[half * 64 + part % 2 * 32 + k] >> (part / 2 * 4) & 15;
                    let high = block[128 + half * 32 + k] >> (part * 2) & 3;
                    *quant = low | high << 4;
                }
            }
            Format::F32 | Format::F16 | Format::BF16 | Format::Q2K | Format::Q3K => {
                unreachable!("formats that take floats are never taken apart")
            }
        }
        f
    }

    /// The weights' values, as the GGUF format defines them.
    pub(super) fn values(&self, format: Format, into: &mut [f32]) {
        let (d, m) = (
            f16::from_bits(self.d).to_f32(),
            f16::from_bits(self.m).to_f32(),
        );
        for (i, (value, &quant)) in into.iter_mut().zip(&self.quants).enumerate() {
            let q = f32::from(quant);
            *value = match format {
                Format::Q4_0 => d * (q - 8.0),
                Format::Q5_0 => d * (q - 16.0),
                Format::Q4_1 | Format::Q5_1 => d * q + m,
                Format::Q8_0 => d * f32::from(quant as i8),
                Format::Q6K => d * f32::from(self.scales[i / 16] as i8) * (q - 32.0),
                _ => d * f32::from(self.scales[i / 32]) * q - m * f32::from(self.minima[i / 32]),
            };
        }
    }
}

/// Decodes one GGUF block of any format; `into` holds the block's weights.
pub(super) fn decode(format: Format, block: &[u8], into: &mut [f32]) {
    let f16_at = |at: usize| f16::from_le_bytes([block[at], block[at + 1]]).to_f32();
    match format {
        Format::F32 => into[0] = f32::from_le_bytes([block[0], block[1], block[2], block[3]]),
        Format::F16 => into[0] = f16_at(0),
        Format::BF16 => into[0] = bf16::from_le_bytes([block[0], block[1]]).to_f32(),
        Format::Q2K => {
            let (d, m) = (f16_at(80), f16_at(82));
            for (i, value) in into.iter_mut().enumerate() {
                let scale = block[i / 16];
                let quant = block[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
                *value = d * f32::from(scale & 15) * f32::from(quant) - m * f32::from(scale >> 4);
            }
        }
        Format::Q3K => {
            let (d, packed) = (f16_at(108), &block[96..108]);
            for (i, value) in into.iter_mut().enumerate() {
                let j = i / 16;
                let scale =
                    packed[j % 8] >> (j / 8 * 4) & 15 | (packed[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
                let low = block[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
                let high = block[i % 32] >> (i / 32) & 1;
                let quant = i16::from(low) - 4 * i16::from(high ^ 1);
                *value = d * (f32::from(scale) - 32.0) * f32::from(quant);
            }
        }
        _ => Fields::read(format, block).values(format, into),
    }
}
