//! AVX-512 with VNNI: 16 outputs per vector; `dpbusd` adds four u8 · i8 products into an i32 lane.

use super::{Quants, Rows, Simd, U6, groups, intrinsics};
use std::arch::x86_64::*;

pub(in super::super) struct Avx512;

impl Simd for Avx512 {
    const LANES: usize = 16;
    const PAIRS: bool = false;
    type Bytes = __m512i;
    type Ints = __m512i;
    type Floats = __m512;

    intrinsics! {
        fn load(from: *const u8) -> __m512i { _mm512_loadu_si512(from.cast()) }
        fn mask(v: __m512i, bits: u8) -> __m512i { _mm512_and_si512(v, _mm512_set1_epi8(bits as i8)) }
        fn or(a: __m512i, b: __m512i) -> __m512i { _mm512_or_si512(a, b) }
        fn look_up(table: &[i8; 16], places: __m512i) -> __m512i {
            _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())), places)
        }
        fn f16s(from: *const u8) -> __m512 { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
        fn u8s(from: *const u8) -> __m512 { _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()))) }
        fn splat(value: f32) -> __m512 { _mm512_set1_ps(value) }
        fn mul(a: __m512, b: __m512) -> __m512 { _mm512_mul_ps(a, b) }
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 { _mm512_fmadd_ps(a, b, c) }
        fn floats(v: __m512i) -> __m512 { _mm512_cvtepi32_ps(v) }
        fn prefetch(line: *const u8) { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
        fn store(v: __m512, to: *mut f32) { _mm512_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn shl<const N: i32>(v: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_sll_epi16(v, _mm_cvtsi32_si128(N)) }
    }
    #[inline(always)]
    unsafe fn shr<const N: i32>(v: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_srl_epi16(v, _mm_cvtsi32_si128(N)) }
    }

    #[inline(always)]
    unsafe fn dots<Q: Quants, const M: usize>(quants: *const u8, x: Rows<M>) -> [__m512i; M] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [_mm512_setzero_si512(); M];
            for (r, sum) in sums.iter_mut().enumerate() {
                let minus_8 = _mm512_set1_epi32(*x.minus_8(r));
                *sum = match Q::CENTRE {
                    _ if Q::SIGNED => _mm512_slli_epi32::<4>(minus_8),
                    16 => _mm512_slli_epi32::<1>(minus_8),
                    8 => minus_8,
                    _ => *sum,
                };
            }
            groups!(G in whole { add::<Q, G, M>(&mut sums, quants, x) });
            sums
        }
    }

    #[inline(always)]
    unsafe fn scaled_dots<const M: usize>(
        quants: *const u8,
        scales: *const u8,
        x: Rows<M>,
    ) -> [__m512; M] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut scaled = [_mm512_setzero_ps(); M];
            let mut sums = [_mm512_setzero_si512(); M];
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = _mm512_set1_epi32(*x.minus_32(r, 0));
            }
            groups!(G in first { add::<U6, G, M>(&mut sums, quants, x) });
            let scale = i8s(scales);
            for (r, sum) in sums.iter_mut().enumerate() {
                scaled[r] = _mm512_mul_ps(_mm512_cvtepi32_ps(*sum), scale);
                *sum = _mm512_set1_epi32(*x.minus_32(r, 1));
            }
            groups!(G in second { add::<U6, G, M>(&mut sums, quants, x) });
            let scale = i8s(scales.add(16));
            for (scaled, sum) in scaled.iter_mut().zip(sums) {
                *scaled = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), scale, *scaled);
            }
            scaled
        }
    }
}

#[inline(always)]
unsafe fn i8s(from: *const u8) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
}

/// Adds four products per output, for each row. Signed weights are lifted by 128.
#[inline(always)]
unsafe fn add<Q: Quants, const G: usize, const M: usize>(
    sums: &mut [__m512i; M],
    quants: *const u8,
    x: Rows<M>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut weights = Q::group::<Avx512, G>(quants);
        if Q::SIGNED {
            weights = _mm512_xor_si512(weights, _mm512_set1_epi8(-128));
        }
        for (r, sum) in sums.iter_mut().enumerate() {
            *sum = _mm512_dpbusd_epi32(*sum, weights, _mm512_set1_epi32(*x.group(r, G)));
        }
    }
}
