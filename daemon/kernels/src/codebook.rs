//! The values that a few bits stand for, where they are not evenly spaced.
//!
//! The IQ1, IQ2 and IQ3 formats spell eight or four weights at once, by the number of a point in a codebook and by
//! signs. A codebook holds those points of a lattice that weights of language models come closest to, in magnitudes;
//! lattices pack points more densely than a grid of independent weights does, as in QuIP# (arXiv 2402.04396). IQ2's
//! are points of E8, in coordinates 1, 3 and 5 whose halves sum to an even number. Which points they are was found by
//! llama.cpp's authors and is part of the format. The files are what `codebook/extract.py` writes; it says how they
//! are laid out.

/// The values of IQ4_NL and IQ4_XS: closer together around zero, where weights are frequent.
pub(super) const NONLINEAR: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

/// The values of MXFP4, doubled: a sign, two bits of exponent and one of mantissa (OCP Microscaling Formats 1.0, E2M1).
pub(super) const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

static IQ1_S: [u16; 2048] = points(include_bytes!("codebook/iq1_s.bin"));
static IQ2_XXS: [u16; 256] = points(include_bytes!("codebook/iq2_xxs.bin"));
static IQ2_XS: [u16; 512] = points(include_bytes!("codebook/iq2_xs.bin"));
static IQ2_S: [u16; 1024] = points(include_bytes!("codebook/iq2_s.bin"));
static IQ3_XXS: [u16; 256] = points(include_bytes!("codebook/iq3_xxs.bin"));
static IQ3_S: [u16; 512] = points(include_bytes!("codebook/iq3_s.bin"));

const fn points<const N: usize>(bytes: &[u8]) -> [u16; N] {
    assert!(bytes.len() == 2 * N, "a codebook has other points");
    let mut points = [0; N];
    let mut i = 0;
    while i < N {
        points[i] = u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]);
        i += 1;
    }
    points
}

/// Point `number` of IQ1_S and IQ1_M, of 2048.
pub(super) fn iq1_s(number: usize) -> [f32; 8] {
    eight(IQ1_S[number], [-1.0, 0.0, 1.0, f32::NAN])
}

/// Magnitudes of point `number` of IQ2_XXS, of 256.
pub(super) fn iq2_xxs(number: usize) -> [f32; 8] {
    eight(IQ2_XXS[number], IQ2)
}

/// Magnitudes of point `number` of IQ2_XS, of 512.
pub(super) fn iq2_xs(number: usize) -> [f32; 8] {
    eight(IQ2_XS[number], IQ2)
}

/// Magnitudes of point `number` of IQ2_S, of 1024.
pub(super) fn iq2_s(number: usize) -> [f32; 8] {
    eight(IQ2_S[number], IQ2)
}

/// Magnitudes of two points of IQ3_XXS, of 256.
pub(super) fn iq3_xxs(numbers: [usize; 2]) -> [f32; 8] {
    let values = [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0];
    twice_four(numbers.map(|number| IQ3_XXS[number]), values)
}

/// Magnitudes of two points of IQ3_S, of 512.
pub(super) fn iq3_s(numbers: [usize; 2]) -> [f32; 8] {
    let values = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0];
    twice_four(numbers.map(|number| IQ3_S[number]), values)
}

/// Nearly 1, 3 and 5 times 8.4; no point has a fourth.
const IQ2: [f32; 4] = [8.0, 25.0, 43.0, f32::NAN];

fn eight(point: u16, values: [f32; 4]) -> [f32; 8] {
    std::array::from_fn(|k| values[usize::from(point >> (2 * k) & 3)])
}

fn twice_four(points: [u16; 2], values: [f32; 8]) -> [f32; 8] {
    std::array::from_fn(|k| values[usize::from(points[k / 4] >> (4 * (k % 4)) & 7)])
}

/// The signs of eight weights from the lowest seven bits (1 is minus): the eighth makes the number of minuses even, which
/// keeps the point in the lattice.
pub(super) fn even_signs(seven: u32) -> u8 {
    let signs = seven as u8 & 127;
    signs | (signs.count_ones() as u8 & 1) << 7
}
