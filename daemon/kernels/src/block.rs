//! GGUF blocks taken apart into their fields, and their meaning in numbers. Everything else builds on this reading.

use super::{Format, codebook::NONLINEAR, decode::MOST};
use half::f16;

/// One block of a format with an integer kernel: `weight = scale · quant − minimum`, both from the fields below.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    /// The f16 scale's bits.
    pub(super) d: u16,
    /// The f16 minimum's bits: added in the plain formats, the scale of subtracted minima in the K formats.
    pub(super) m: u16,
    /// Scales of sub-blocks: u6 per 32 (Q4_K, Q5_K; IQ4_XS around 32), i8 per 16 (Q6_K).
    pub(super) scales: [u8; 16],
    /// Minima of sub-blocks of 32: u6.
    pub(super) minima: [u8; 8],
    /// Quants: unsigned, or i8 bits in Q8_0; in IQ4, places in the table of values.
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
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::IQ4NL => {
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
                for (i, byte) in block[at..at + 16].iter().enumerate() {
                    let bit = |k: usize| ((high >> k & 1) << 4) as u8;
                    f.quants[i] = byte & 15 | bit(i);
                    f.quants[i + 16] = byte >> 4 | bit(i + 16);
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
                let low_at = if format == Format::Q5K { 48 } else { 16 };
                let pairs = f.quants.as_chunks_mut::<64>().0.iter_mut();
                for (pair, low) in pairs.zip(block[low_at..].as_chunks::<32>().0) {
                    for (k, byte) in low.iter().enumerate() {
                        (pair[k], pair[k + 32]) = (byte & 15, byte >> 4);
                    }
                }
                if format == Format::Q5K {
                    for (sub, quants) in f.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                        for (quant, high) in quants.iter_mut().zip(&block[16..48]) {
                            *quant |= (high >> sub & 1) << 4;
                        }
                    }
                }
            }
            Format::Q6K => {
                f.scales.copy_from_slice(&block[192..208]);
                f.d = u16_at(208);
                for (part, quants) in f.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                    let (half, part) = (part / 4, part % 4);
                    let low = &block[half * 64 + part % 2 * 32..][..32];
                    let high = &block[128 + half * 32..][..32];
                    for ((quant, low), high) in quants.iter_mut().zip(low).zip(high) {
                        *quant = low >> (part / 2 * 4) & 15 | (high >> (part * 2) & 3) << 4;
                    }
                }
            }
            Format::IQ4XS => {
                f.d = u16_at(0);
                let high = u16_at(2);
                for (j, quants) in f.quants.as_chunks_mut::<32>().0.iter_mut().enumerate() {
                    let high = (high >> (2 * j) & 3) as u8;
                    f.scales[j] = block[4 + j / 2] >> (j % 2 * 4) & 15 | high << 4;
                    for (k, byte) in block[8 + 16 * j..][..16].iter().enumerate() {
                        (quants[k], quants[k + 16]) = (byte & 15, byte >> 4);
                    }
                }
            }
            _ => unreachable!("formats that take floats are never taken apart"),
        }
        f
    }

    /// The quants of a block of 32, four to a little-endian word.
    pub(super) fn words(&self, block: usize) -> [u32; 8] {
        let mut words = [0; 8];
        let quads = self.quants[32 * block..][..32].as_chunks::<4>().0;
        for (word, &quad) in words.iter_mut().zip(quads) {
            *word = u32::from_le_bytes(quad);
        }
        words
    }

    /// The weights' values, as the GGUF format defines them.
    pub(super) fn values(&self, format: Format, into: &mut [f32]) {
        let d = f16::from_bits(self.d).to_f32();
        let m = f16::from_bits(self.m).to_f32();
        match format {
            Format::Q4_0 => self.each(into, 32, |_, q| d * (f32::from(q) - 8.0)),
            Format::Q5_0 => self.each(into, 32, |_, q| d * (f32::from(q) - 16.0)),
            Format::Q4_1 | Format::Q5_1 => self.each(into, 32, |_, q| d * f32::from(q) + m),
            Format::Q8_0 => self.each(into, 32, |_, q| d * f32::from(q as i8)),
            Format::Q6K => self.each(into, 16, |j, q| {
                d * f32::from(self.scales[j] as i8) * (f32::from(q) - 32.0)
            }),
            Format::IQ4NL => self.each(into, 32, |_, q| d * nonlinear(q)),
            Format::IQ4XS => self.each(into, 32, |j, q| {
                d * (f32::from(self.scales[j]) - 32.0) * nonlinear(q)
            }),
            _ => self.each(into, 32, |j, q| {
                d * f32::from(self.scales[j]) * f32::from(q) - m * f32::from(self.minima[j])
            }),
        }
    }

    /// Maps the quants of sub-blocks of `size`, with the sub-block's number.
    #[inline(always)]
    fn each(&self, into: &mut [f32], size: usize, value: impl Fn(usize, u8) -> f32) {
        for (j, (into, quants)) in into
            .chunks_mut(size)
            .zip(self.quants.chunks(size))
            .enumerate()
        {
            for (into, &quant) in into.iter_mut().zip(quants) {
                *into = value(j, quant);
            }
        }
    }
}

fn nonlinear(quant: u8) -> f32 {
    f32::from(NONLINEAR[usize::from(quant)])
}
