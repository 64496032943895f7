//! Weights that are no numbers: NaN and infinity, in every format. A model that has one answers nothing, or nonsense, and no
//! step of a computation says so.

use tandem_kernels::Format;

/// Bytes that are looked at together, about.
const PIECE_BYTES: usize = 1 << 20;

/// The largest exponent of a block of MXFP4: beyond it the larger of a block's values leave the range of a float, and 255
/// stands for NaN.
const LARGEST_POWER: u8 = 252;

/// Whole blocks that make about a mebibyte.
pub(super) fn piece_bytes(format: Format) -> usize {
    PIECE_BYTES / format.block_bytes() * format.block_bytes()
}

/// Where in `bytes`, whole blocks of a format, the first block begins whose weights are not all finite.
pub(super) fn first_not(format: Format, bytes: &[u8]) -> Option<usize> {
    let at = |size: usize, block: Option<usize>| block.map(|block| block * size);
    match format {
        Format::F32 => at(4, first(bytes.as_chunks::<4>().0, |b| is_not_f32(*b))),
        Format::F16 => at(2, first(bytes.as_chunks::<2>().0, |b| is_not_f16(*b))),
        Format::BF16 => at(2, first(bytes.as_chunks::<2>().0, |b| is_not_bf16(*b))),
        Format::Q4_0 => scales::<18, 1>(bytes, [0]),
        Format::Q4_1 => scales::<20, 2>(bytes, [0, 2]),
        Format::Q5_0 => scales::<22, 1>(bytes, [0]),
        Format::Q5_1 => scales::<24, 2>(bytes, [0, 2]),
        Format::Q8_0 => scales::<34, 1>(bytes, [0]),
        Format::Q2K => scales::<84, 2>(bytes, [80, 82]),
        Format::Q3K => scales::<110, 1>(bytes, [108]),
        Format::Q4K => scales::<144, 2>(bytes, [0, 2]),
        Format::Q5K => scales::<176, 2>(bytes, [0, 2]),
        Format::Q6K => scales::<210, 1>(bytes, [208]),
        Format::IQ4NL => scales::<18, 1>(bytes, [0]),
        Format::IQ4XS => scales::<136, 1>(bytes, [0]),
        Format::IQ3S => scales::<110, 1>(bytes, [0]),
        Format::IQ3XXS => scales::<98, 1>(bytes, [0]),
        Format::IQ2S => scales::<82, 1>(bytes, [0]),
        Format::IQ2XS => scales::<74, 1>(bytes, [0]),
        Format::IQ2XXS => scales::<66, 1>(bytes, [0]),
        Format::IQ1S => scales::<50, 1>(bytes, [0]),
        Format::TQ1_0 => scales::<54, 1>(bytes, [52]),
        Format::TQ2_0 => scales::<66, 1>(bytes, [64]),
        Format::IQ1M => at(56, first(bytes.as_chunks::<56>().0, is_not_iq1_m)),
        Format::MXFP4 => at(
            17,
            first(bytes.as_chunks::<17>().0, |b| b[0] > LARGEST_POWER),
        ),
    }
}

/// The first of some blocks of which something holds. Looks at many at a time, without leaving off in between, so that it
/// vectorizes: what is looked for is hardly ever there.
fn first<const N: usize>(blocks: &[[u8; N]], holds: impl Fn(&[u8; N]) -> bool) -> Option<usize> {
    const TOGETHER: usize = 256;
    for (number, some) in blocks.chunks(TOGETHER).enumerate() {
        if some.iter().fold(false, |any, block| any | holds(block)) {
            let place = some.iter().position(&holds)?;
            return Some(number * TOGETHER + place);
        }
    }
    None
}

/// The first block of `N` bytes that has a half at one of these places which is not finite.
fn scales<const N: usize, const S: usize>(bytes: &[u8], places: [usize; S]) -> Option<usize> {
    let is_not = |block: &[u8; N]| {
        let mut halves = places.iter().map(|&at| [block[at], block[at + 1]]);
        halves.any(is_not_f16)
    };
    first(bytes.as_chunks::<N>().0, is_not).map(|block| block * N)
}

/// The scale lies in the upper four bits of four words.
fn is_not_iq1_m(block: &[u8; 56]) -> bool {
    let high = |word: usize| block[48 + 2 * word + 1] >> 4;
    is_not_f16([high(0) | high(1) << 4, high(2) | high(3) << 4])
}

fn is_not_f32(bytes: [u8; 4]) -> bool {
    u32::from_le_bytes(bytes) & 0x7f80_0000 == 0x7f80_0000
}

fn is_not_f16(bytes: [u8; 2]) -> bool {
    u16::from_le_bytes(bytes) & 0x7c00 == 0x7c00
}

fn is_not_bf16(bytes: [u8; 2]) -> bool {
    u16::from_le_bytes(bytes) & 0x7f80 == 0x7f80
}

#[cfg(test)]
mod tests {
    use tandem_kernels::check::blocks::{Random, random_blocks};
    use tandem_kernels::{Isa, PackedMatrix};

    use super::*;

    fn all_finite(format: Format, bytes: &[u8]) -> bool {
        let weights = bytes.len() / format.block_bytes() * format.block_weights();
        let packed = PackedMatrix::pack_for(Isa::Portable, format, 1, weights, bytes).unwrap();
        let mut values = vec![0.0; weights];
        packed.dequantize_row(0, &mut values);
        values.iter().all(|value| value.is_finite())
    }

    /// Every bit of a block is set once and every byte is made the largest, so that each scale becomes infinite or NaN in some
    /// of the cases.
    #[test]
    fn what_is_found_is_what_decodes_to_no_number() {
        for format in Format::ALL {
            let size = format.block_bytes();
            let sound = random_blocks(format, 3 * format.block_weights(), &mut Random(7));
            assert_eq!(first_not(format, &sound), None, "{format:?}");
            assert!(all_finite(format, &sound), "{format:?}");
            let mut found = 0;
            for at in 0..size {
                for value in [0x7c, 0xfc, 0x7f, 0x80, 0xf8, 0xf0, 0xff] {
                    let mut bytes = sound.clone();
                    bytes[size + at] = value;
                    if at + 1 < size {
                        for low in [None, Some(0x80)] {
                            bytes[size + at + 1] = low.unwrap_or(value);
                            found += usize::from(agrees(format, &bytes));
                        }
                    }
                    found += usize::from(agrees(format, &bytes));
                }
            }
            if format == Format::IQ1M {
                let mut bytes = sound.clone();
                for (word, high) in [(0, 0x0), (1, 0x0), (2, 0xc0), (3, 0x70)] {
                    let byte = &mut bytes[size + 48 + 2 * word + 1];
                    *byte = *byte & 0x0f | high;
                }
                found += usize::from(agrees(format, &bytes));
            }
            assert!(found > 0, "{format:?}: no case that has to be found");
        }
    }

    /// Checks a case; returns whether there was something to be found.
    fn agrees(format: Format, bytes: &[u8]) -> bool {
        let expected = match all_finite(format, bytes) {
            true => None,
            false => Some(format.block_bytes()),
        };
        let found = first_not(format, bytes);
        // A power of two that makes some values infinite is refused whichever values the block has.
        let power = format == Format::MXFP4 && found.is_some();
        assert!(
            found == expected || power,
            "{format:?}: {found:?} for {expected:?}"
        );
        found.is_some()
    }

    #[test]
    fn the_first_block_is_named_wherever_it_lies() {
        for at in [0, 1, 255, 256, 1023] {
            let mut bytes = vec![0; 1024 * 34];
            bytes[at * 34 + 1] = 0x7c;
            assert_eq!(first_not(Format::Q8_0, &bytes), Some(at * 34));
        }
    }
}
