//! NEON.
#![expect(
    unsafe_code,
    reason = "vendor intrinsics, which every CPU of the architecture has"
)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::{LANES, Simd};

/// Every CPU of the architecture has NEON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Neon(());

impl Neon {
    pub(super) fn new() -> Self {
        Self(())
    }
}

/// Applies a function to all quarters.
#[inline(always)]
fn zip(
    a: [float32x4_t; 4],
    b: [float32x4_t; 4],
    f: impl Fn(float32x4_t, float32x4_t) -> float32x4_t,
) -> [float32x4_t; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

/// Widens eight halves.
#[inline(always)]
fn widen(halves: uint16x8_t) -> [float32x4_t; 2] {
    let (low, high);
    // SAFETY: both instructions are in the base set and touch registers only.
    unsafe {
        asm!(
            "fcvtl {low:v}.4s, {halves:v}.4h",
            "fcvtl2 {high:v}.4s, {halves:v}.8h",
            low = out(vreg) low,
            high = lateout(vreg) high,
            halves = in(vreg) halves,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    [low, high]
}

// SAFETY of every block below: the instructions are in the base set, and the array references are valid for the
// sixteen elements that the loads and stores touch.

impl Simd for Neon {
    type V = [float32x4_t; 4];
    const ROOMY: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: see above.
        unsafe { [vdupq_n_f32(x); 4] }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: see above.
        unsafe {
            let from = from.as_ptr();
            [
                vld1q_f32(from),
                vld1q_f32(from.add(4)),
                vld1q_f32(from.add(8)),
                vld1q_f32(from.add(12)),
            ]
        }
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        for (part, v) in v.into_iter().enumerate() {
            // SAFETY: see above.
            unsafe { vst1q_f32(to[4 * part..][..4].as_mut_ptr(), v) }
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::V {
        // SAFETY: see above.
        let (low, high) = unsafe { (vld1q_u16(from.as_ptr()), vld1q_u16(from[8..].as_ptr())) };
        let ([a, b], [c, d]) = (widen(low), widen(high));
        [a, b, c, d]
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vaddq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vsubq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vmulq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vdivq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe {
            [
                vfmaq_f32(c[0], a[0], b[0]),
                vfmaq_f32(c[1], a[1], b[1]),
                vfmaq_f32(c[2], a[2], b[2]),
                vfmaq_f32(c[3], a[3], b[3]),
            ]
        }
    }

    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vmaxq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { vminq_f32(a, b) },
        )
    }

    #[inline(always)]
    fn scale_by_low_bits(self, a: Self::V, n: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            n,
            #[inline(always)]
            |a, n| unsafe {
                let exponent = vshlq_n_s32::<23>(vreinterpretq_s32_f32(n));
                vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), exponent))
            },
        )
    }
}
