//! Where the packed form keeps each field.
//!
//! The outputs of a matrix are cut into strips of as many outputs as a vector has 32-bit lanes. A strip holds its
//! super-blocks (one GGUF block of each of its outputs) one after another:
//!
//! ```text
//! head    d[lane], m[lane]                      f16, once per super-block: K formats only
//! blocks  of 32 weights per output, each
//!   params  d, m [lane] f16; or scales [lane] and, but for IQ4_XS, a second scale or minimum [lane], u8/i8
//!   quants  vectors of 4 · lanes bytes; vector g holds weights 4g..4g+4 of lane 0, then of lane 1 …
//!           4-bit parts: vectors 2i and 2i+1 share bytes (low and high nibble); then the fifth bits (one vector,
//!           bit g) or the upper two bits (two vectors, two bits each)
//! ```
//! One broadcast of four activations thus meets four weights of every output of the strip, without any shuffle.

use super::{Format, block::Fields};

/// Version of the packed form. It rises with every change of what the bytes of [`PackedMatrix`](super::PackedMatrix)
/// mean for a format or an instruction set, so that files of packed weights are then made anew; `tests/layout.rs` fails
/// where that was forgotten.
pub const LAYOUT_VERSION: u32 = 1;

/// Weights per output in a block that shares one activation scale.
pub(super) const BLOCK: usize = 32;

/// Low nibbles, lowest bits, and lowest two bits of four weights at once.
const LOW: u32 = 0x0f0f_0f0f;
const ONE: u32 = 0x0101_0101;
const TWO: u32 = 0x0303_0303;

/// Sizes of the parts, in bytes per output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    format: Format,
    /// Blocks of 32 in a super-block.
    pub(super) blocks: usize,
    pub(super) head: usize,
    pub(super) params: usize,
    pub(super) quants: usize,
}

impl Layout {
    /// The layout of a format with an integer kernel (and of no other).
    pub(super) const fn of(format: Format) -> Layout {
        let (blocks, head, params, quants) = match format {
            Format::Q4_0 => (1, 0, 2, 16),
            Format::Q4_1 => (1, 0, 4, 16),
            Format::Q5_0 => (1, 0, 2, 20),
            Format::Q5_1 => (1, 0, 4, 20),
            Format::Q4K => (8, 4, 2, 16),
            Format::Q5K => (8, 4, 2, 20),
            Format::Q6K => (8, 2, 2, 24),
            Format::IQ4NL => (1, 0, 2, 16),
            Format::IQ4XS => (8, 2, 1, 16),
            _ => (1, 0, 2, 32),
        };
        Layout {
            format,
            blocks,
            head,
            params,
            quants,
        }
    }

    /// Bytes of a super-block of one output.
    pub(super) const fn bytes(self) -> usize {
        self.head + self.blocks * (self.params + self.quants)
    }

    /// Writes one output's fields into its strip's super-block.
    pub(super) fn put(self, fields: &Fields, lanes: usize, lane: usize, into: &mut [u8]) {
        let mut set16 =
            |at: usize, value: u16| into[at..at + 2].copy_from_slice(&value.to_le_bytes());
        if self.head > 0 {
            set16(2 * lane, fields.d);
            if self.head > 2 {
                set16(2 * (lanes + lane), fields.m);
            }
        }
        for block in 0..self.blocks {
            let (params, quants) = self.parts(lanes, block);
            match self.format {
                Format::Q6K => {
                    into[params + lane] = fields.scales[2 * block];
                    into[params + lanes + lane] = fields.scales[2 * block + 1];
                }
                Format::IQ4XS => into[params + lane] = fields.scales[block],
                _ if self.head > 0 => {
                    into[params + lane] = fields.scales[block];
                    into[params + lanes + lane] = fields.minima[block];
                }
                _ => {
                    let values = [fields.d, fields.m];
                    for (field, value) in values.into_iter().take(self.params / 2).enumerate() {
                        into[params + 2 * (field * lanes + lane)..][..2]
                            .copy_from_slice(&value.to_le_bytes());
                    }
                }
            }
            let words = fields.words(block);
            let mut set = |vector: usize, word: u32| {
                let at = quants + 4 * (vector * lanes + lane);
                into[at..at + 4].copy_from_slice(&word.to_le_bytes());
            };
            if self.quants == 32 {
                words
                    .into_iter()
                    .enumerate()
                    .for_each(|(g, word)| set(g, word));
                continue;
            }
            for (i, [even, odd]) in words.as_chunks().0.iter().enumerate() {
                set(i, even & LOW | (odd & LOW) << 4);
            }
            let high = |g: usize, mask: u32| words[g] >> 4 & mask;
            if self.quants == 20 {
                set(4, (0..8).map(|g| high(g, ONE) << g).sum());
            } else if self.quants == 24 {
                set(4, (0..4).map(|g| high(g, TWO) << (2 * g)).sum());
                set(5, (0..4).map(|g| high(4 + g, TWO) << (2 * g)).sum());
            }
        }
    }

    /// Reads one output's fields back.
    pub(super) fn get(self, lanes: usize, lane: usize, from: &[u8]) -> Fields {
        let get16 = |at: usize| u16::from_le_bytes([from[at], from[at + 1]]);
        let mut fields = Fields::ZERO;
        if self.head > 0 {
            fields.d = get16(2 * lane);
        }
        if self.head > 2 {
            fields.m = get16(2 * (lanes + lane));
        }
        for block in 0..self.blocks {
            let (params, quants) = self.parts(lanes, block);
            match self.format {
                Format::Q6K => {
                    fields.scales[2 * block] = from[params + lane];
                    fields.scales[2 * block + 1] = from[params + lanes + lane];
                }
                Format::IQ4XS => fields.scales[block] = from[params + lane],
                _ if self.head > 0 => {
                    fields.scales[block] = from[params + lane];
                    fields.minima[block] = from[params + lanes + lane];
                }
                _ => {
                    fields.d = get16(params + 2 * lane);
                    if self.params > 2 {
                        fields.m = get16(params + 2 * (lanes + lane));
                    }
                }
            }
            let word = |vector: usize| {
                let at = quants + 4 * (vector * lanes + lane);
                u32::from_le_bytes([from[at], from[at + 1], from[at + 2], from[at + 3]])
            };
            let quads = fields.quants[block * BLOCK..][..BLOCK]
                .as_chunks_mut::<4>()
                .0;
            for (g, quad) in quads.iter_mut().enumerate() {
                let low = || word(g / 2) >> (g % 2 * 4) & LOW;
                let quants = match self.quants {
                    32 => word(g),
                    20 => low() | (word(4) >> g & ONE) << 4,
                    24 => low() | (word(4 + g / 4) >> (g % 4 * 2) & TWO) << 4,
                    _ => low(),
                };
                *quad = quants.to_le_bytes();
            }
        }
        fields
    }

    /// Offsets of a block's parameters and quants within its super-block.
    fn parts(self, lanes: usize, block: usize) -> (usize, usize) {
        let params = lanes * (self.head + block * (self.params + self.quants));
        (params, params + lanes * self.params)
    }
}
