//! AVX-512 and AVX2.
#![expect(
    unsafe_code,
    reason = "vendor intrinsics; the types prove that the CPU has them"
)]

use std::arch::x86_64::*;

use super::{Kernel, LANES, Simd};

/// The CPU has AVX-512F (and what comes before it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Avx512(());

/// The CPU has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Avx2(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let there = is_x86_feature_detected!("avx512f") && Avx2::detect().is_some();
        there.then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma,f16c")]
        fn compiled<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` exists only where the CPU has these features.
        unsafe { compiled(self, kernel) }
    }
}

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        let there = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        there.then_some(Self(()))
    }

    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn compiled<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` exists only where the CPU has these features.
        unsafe { compiled(self, kernel) }
    }
}

// SAFETY of every block below: `self` exists only where the CPU has the instructions, and the array references are
// valid for the sixteen elements that the unaligned loads and stores touch.

impl Simd for Avx512 {
    type V = __m512;
    const ROOMY: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, v: __m512, to: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), v) }
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    fn scale_by_low_bits(self, a: __m512, n: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let exponent = _mm512_slli_epi32::<23>(_mm512_castps_si512(n));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), exponent))
        }
    }
}

/// Applies a function to both halves.
#[inline(always)]
fn zip(a: [__m256; 2], b: [__m256; 2], f: impl Fn(__m256, __m256) -> __m256) -> [__m256; 2] {
    [f(a[0], b[0]), f(a[1], b[1])]
}

impl Simd for Avx2 {
    type V = [__m256; 2];
    const ROOMY: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        // SAFETY: see above.
        unsafe { [_mm256_set1_ps(x); 2] }
    }

    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_loadu_ps(from.as_ptr()),
                _mm256_loadu_ps(from[8..].as_ptr()),
            ]
        }
    }

    #[inline(always)]
    fn store(self, v: Self::V, to: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), v[0]);
            _mm256_storeu_ps(to[8..].as_mut_ptr(), v[1]);
        }
    }

    #[inline(always)]
    fn load_f16(self, from: &[u16; LANES]) -> Self::V {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from[8..].as_ptr().cast())),
            ]
        }
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { _mm256_add_ps(a, b) },
        )
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { _mm256_sub_ps(a, b) },
        )
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { _mm256_mul_ps(a, b) },
        )
    }

    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { _mm256_div_ps(a, b) },
        )
    }

    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_fmadd_ps(a[0], b[0], c[0]),
                _mm256_fmadd_ps(a[1], b[1], c[1]),
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
            |a, b| unsafe { _mm256_max_ps(a, b) },
        )
    }

    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: see above.
        zip(
            a,
            b,
            #[inline(always)]
            |a, b| unsafe { _mm256_min_ps(a, b) },
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
                let exponent = _mm256_slli_epi32::<23>(_mm256_castps_si256(n));
                _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent))
            },
        )
    }
}
