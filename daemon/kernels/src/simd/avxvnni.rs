//! AVX-VNNI, for CPUs that have it without AVX-512: the vectors of AVX2, of whose sums `dpbusd` adds four u8 · i8 products
//! into an i32 lane at a time.

use super::{Quants, Rows, U6, avx2::Avx2, groups};
use std::arch::x86_64::*;

/// [`Simd::dots`](super::Simd::dots).
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn dots<Q: Quants, const M: usize>(
    quants: *const u8,
    x: Rows<M>,
) -> [__m256i; M] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [_mm256_setzero_si256(); M];
        for (r, sum) in sums.iter_mut().enumerate() {
            let minus_8 = _mm256_set1_epi32(*x.minus_8(r));
            *sum = match Q::CENTRE {
                _ if Q::SIGNED => _mm256_slli_epi32::<4>(minus_8),
                16 => _mm256_slli_epi32::<1>(minus_8),
                8 => minus_8,
                _ => *sum,
            };
        }
        groups!(G in whole { add::<Q, G, M>(&mut sums, quants, x) });
        sums
    }
}

/// [`Simd::scaled_dots`](super::Simd::scaled_dots).
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn scaled_dots<const M: usize>(
    quants: *const u8,
    scales: *const u8,
    x: Rows<M>,
) -> [__m256; M] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut scaled = [_mm256_setzero_ps(); M];
        let mut sums = [_mm256_setzero_si256(); M];
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = _mm256_set1_epi32(*x.minus_32(r, 0));
        }
        groups!(G in first { add::<U6, G, M>(&mut sums, quants, x) });
        let scale = i8s(scales);
        for (r, sum) in sums.iter_mut().enumerate() {
            scaled[r] = _mm256_mul_ps(_mm256_cvtepi32_ps(*sum), scale);
            *sum = _mm256_set1_epi32(*x.minus_32(r, 1));
        }
        groups!(G in second { add::<U6, G, M>(&mut sums, quants, x) });
        let scale = i8s(scales.add(8));
        for (scaled, sum) in scaled.iter_mut().zip(sums) {
            *scaled = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, *scaled);
        }
        scaled
    }
}

#[inline(always)]
unsafe fn i8s(from: *const u8) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
}

/// Adds four products per output, for each row. Signed weights are lifted by 128.
#[inline(always)]
unsafe fn add<Q: Quants, const G: usize, const M: usize>(
    sums: &mut [__m256i; M],
    quants: *const u8,
    x: Rows<M>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut weights = Q::group::<Avx2<true>, G>(quants);
        if Q::SIGNED {
            weights = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
        }
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = _mm256_dpbusd_avx_epi32(*sum, weights, _mm256_set1_epi32(*x.group(r, G)));
        }
    }
}
