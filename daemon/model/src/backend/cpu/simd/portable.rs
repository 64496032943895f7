//! Plain Rust: the reference, and what CPUs without the others get.

use half::f16;

use super::{LANES, Simd};

/// Always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Portable;

/// Applies a function lane by lane.
#[inline(always)]
fn zip(a: [f32; LANES], b: [f32; LANES], f: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

impl Simd for Portable {
    type V = [f32; LANES];
    const ROOMY: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        *from
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        *to = v;
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::V {
        from.map(|bits| f16::from_bits(bits).to_f32())
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |a, b| a * b)
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // Rounded twice: without the instruction `mul_add` is a slow call.
        std::array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, f32::max)
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, f32::min)
    }

    #[inline(always)]
    fn scale_by_low_bits(self, a: Self::V, n: Self::V) -> Self::V {
        zip(a, n, |a, n| {
            f32::from_bits(a.to_bits().wrapping_add(n.to_bits() << 23))
        })
    }
}
