//! Root-mean-square norms: of heads in place, and of rows piece by piece on their way to what comes next.

use super::CpuBackend;
use super::rows::{AddTo, map_lanes};
use super::simd::{Isa, Kernel, LANES, Simd};
use crate::backend;

/// Floats of a piece: whole vectors, and whole blocks of what is quantized.
const PIECE: usize = 256;

/// `x / rms(x) · weight`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norm<'a> {
    pub(super) weight: &'a [f32],
    pub(super) eps: f32,
}

impl<'a> From<&backend::Norm<'a, CpuBackend>> for Norm<'a> {
    fn from(norm: &backend::Norm<'a, CpuBackend>) -> Self {
        Self {
            weight: norm.weight,
            eps: norm.eps,
        }
    }
}

impl Norm<'_> {
    /// Norms each run of the weight's length.
    pub(super) fn apply(self, isa: Isa, x: &mut [f32]) {
        isa.run(Apply { x, norm: self });
    }

    /// Calls `take` with the pieces of a normed row, in order, and the place where each begins.
    pub(super) fn pieces(self, isa: Isa, x: &[f32], mut take: impl FnMut(usize, &[f32])) {
        let factor = isa.run(Factor { x, eps: self.eps });
        let mut piece = [0.0; PIECE];
        let parts = x.chunks(PIECE).zip(self.weight.chunks(PIECE));
        for (number, (x, weight)) in parts.enumerate() {
            let piece = &mut piece[..x.len()];
            piece.copy_from_slice(x);
            isa.run(Scale {
                x: piece,
                factor,
                weight,
            });
            take(number * PIECE, piece);
        }
    }

    /// `x += norm(y)`.
    pub(super) fn add(self, isa: Isa, x: &mut [f32], y: &[f32]) {
        self.pieces(isa, y, |start, y| {
            let x = &mut x[start..start + y.len()];
            isa.run(AddTo { x, y });
        });
    }
}

/// `1 / rms(x)`.
struct Factor<'a> {
    x: &'a [f32],
    eps: f32,
}

impl Kernel for Factor<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let (lanes, rest) = self.x.as_chunks::<LANES>();
        // Two chains of sums keep the unit busy.
        let mut sums = [simd.splat(0.0); 2];
        for (at, x) in lanes.iter().enumerate() {
            let x = simd.load(x);
            sums[at % 2] = simd.fma(x, x, sums[at % 2]);
        }
        let mut sum = simd.sum(simd.add(sums[0], sums[1]));
        rest.iter().for_each(|x| sum += x * x);
        (sum / self.x.len() as f32 + self.eps).sqrt().recip()
    }
}

/// `x = x · factor · weight`.
struct Scale<'a> {
    x: &'a mut [f32],
    factor: f32,
    weight: &'a [f32],
}

impl Kernel for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let factor = simd.splat(self.factor);
        map_lanes(
            simd,
            self.x,
            self.weight,
            #[inline(always)]
            |x, weight| simd.mul(simd.mul(x, factor), weight),
        );
    }
}

/// See [`Norm::apply`].
struct Apply<'a> {
    x: &'a mut [f32],
    norm: Norm<'a>,
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Norm { weight, eps } = self.norm;
        for x in self.x.chunks_exact_mut(weight.len()) {
            let factor = Factor { x: &*x, eps }.run(simd);
            Scale { x, factor, weight }.run(simd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(len: usize, seed: u32) -> Vec<f32> {
        (0..len as u32)
            .map(|i| ((i * 2_654_435_761 + seed * 97) >> 8) as f32 / (1 << 21) as f32 - 4.0)
            .collect()
    }

    #[test]
    fn norms_agree_with_their_formula() {
        for isa in [Isa::Portable, Isa::detect()] {
            for width in [2, 16, 24, 576] {
                let (x, weight) = (values(3 * width, 5), values(width, 6));
                let mut out = x.clone();
                let norm = Norm {
                    weight: &weight,
                    eps: 1e-5,
                };
                norm.apply(isa, &mut out);
                for (x, out) in x.chunks(width).zip(out.chunks(width)) {
                    let square: f64 = x.iter().map(|x| f64::from(*x).powi(2)).sum();
                    let factor = (square / width as f64 + 1e-5).sqrt().recip();
                    for ((x, weight), out) in x.iter().zip(&weight).zip(out) {
                        let exact = f64::from(*x) * factor * f64::from(*weight);
                        let error = (f64::from(*out) - exact).abs();
                        assert!(error <= 2e-6 * exact.abs().max(1e-3), "{out} and {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_are_the_whole_row_to_the_bit() {
        for isa in [Isa::Portable, Isa::detect()] {
            for width in [8, 256, 300, 576] {
                let (x, weight) = (values(width, 7), values(width, 8));
                let norm = Norm {
                    weight: &weight,
                    eps: 1e-6,
                };
                let mut whole = x.clone();
                norm.apply(isa, &mut whole);
                let mut pieces = Vec::new();
                norm.pieces(isa, &x, |start, piece| {
                    assert_eq!(start, pieces.len());
                    pieces.extend_from_slice(piece);
                });
                assert_eq!(pieces, whole);
                let mut sum = values(width, 9);
                let expected: Vec<f32> = sum.iter().zip(&whole).map(|(x, y)| x + y).collect();
                norm.add(isa, &mut sum, &x);
                assert_eq!(sum, expected);
            }
        }
    }
}
