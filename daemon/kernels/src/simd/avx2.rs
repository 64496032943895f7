//! AVX2 with FMA and F16C: 8 outputs per vector, sums of products in i16 lanes as far as they fit.
//!
//! `maddubs` adds two u8 · i8 products into an i16 lane, which over a block of 32 gathers 16 products. Weights around
//! their centre keep that final sum within 16 · 16 · 127 = 32,512 at 5 bits (and 8 · 32 · 127 over half a block at
//! 6 bits), so partial sums may wrap around; they start from −centre · Σ activations of the lane.
//!
//! No closures around intrinsics: they would be functions of their own, compiled without these instructions.

use super::{Quants, Rows, Simd, U6, avxvnni, groups, intrinsics};
use std::arch::x86_64::*;

/// With `VNNI`, sums of products are those of `avxvnni`.
pub(in super::super) struct Avx2<const VNNI: bool>;

impl<const VNNI: bool> Simd for Avx2<VNNI> {
    const LANES: usize = 8;
    const PAIRS: bool = !VNNI;
    type Bytes = __m256i;
    type Ints = __m256i;
    type Floats = __m256;

    intrinsics! {
        fn load(from: *const u8) -> __m256i { _mm256_loadu_si256(from.cast()) }
        fn mask(v: __m256i, bits: u8) -> __m256i { _mm256_and_si256(v, _mm256_set1_epi8(bits as i8)) }
        fn or(a: __m256i, b: __m256i) -> __m256i { _mm256_or_si256(a, b) }
        fn shl<const N>(v: __m256i) -> __m256i { _mm256_slli_epi16::<N>(v) }
        fn shr<const N>(v: __m256i) -> __m256i { _mm256_srli_epi16::<N>(v) }
        fn look_up(table: &[i8; 16], places: __m256i) -> __m256i {
            _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())), places)
        }
        fn f16s(from: *const u8) -> __m256 { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
        fn u8s(from: *const u8) -> __m256 { _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()))) }
        fn splat(value: f32) -> __m256 { _mm256_set1_ps(value) }
        fn mul(a: __m256, b: __m256) -> __m256 { _mm256_mul_ps(a, b) }
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 { _mm256_fmadd_ps(a, b, c) }
        fn floats(v: __m256i) -> __m256 { _mm256_cvtepi32_ps(v) }
        fn prefetch(line: *const u8) { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
        fn store(v: __m256, to: *mut f32) { _mm256_storeu_ps(to, v) }
    }

    #[inline(always)]
    unsafe fn dots<Q: Quants, const M: usize>(quants: *const u8, x: Rows<M>) -> [__m256i; M] {
        // SAFETY: the caller's promise.
        unsafe {
            if VNNI {
                return avxvnni::dots::<Q, M>(quants, x);
            }
            let mut sums = [_mm256_setzero_si256(); M];
            let ones = _mm256_set1_epi16(1);
            if Q::SIGNED {
                groups!(G in whole {
                    let weights = Q::group::<Self, G>(quants);
                    let magnitudes = _mm256_abs_epi8(weights);
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let signed = _mm256_sign_epi8(_mm256_set1_epi32(*x.group(r, G)), weights);
                        let pairs = _mm256_maddubs_epi16(magnitudes, signed);
                        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
                    }
                });
                return sums;
            }
            for (r, sum) in sums.iter_mut().enumerate() {
                if Q::CENTRE != 0 {
                    *sum = _mm256_set1_epi32(*x.minus_8(r));
                }
                if Q::CENTRE == 16 {
                    *sum = _mm256_add_epi16(*sum, *sum);
                }
            }
            groups!(G in whole { add::<Q, G, M>(&mut sums, quants, x) });
            for sum in &mut sums {
                *sum = _mm256_madd_epi16(*sum, ones);
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn scaled_dots<const M: usize>(
        quants: *const u8,
        scales: *const u8,
        x: Rows<M>,
    ) -> [__m256; M] {
        // SAFETY: the caller's promise.
        unsafe {
            if VNNI {
                return avxvnni::scaled_dots(quants, scales, x);
            }
            let mut scaled = [_mm256_setzero_si256(); M];
            let mut sums = scaled;
            for (r, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_set1_epi32(*x.minus_32(r, 0));
            }
            groups!(G in first { add::<U6, G, M>(&mut sums, quants, x) });
            let scale = twice(scales);
            for (r, sum) in sums.iter_mut().enumerate() {
                scaled[r] = _mm256_madd_epi16(*sum, scale);
                *sum = _mm256_set1_epi32(*x.minus_32(r, 1));
            }
            groups!(G in second { add::<U6, G, M>(&mut sums, quants, x) });
            let scale = twice(scales.add(8));
            let mut floats = [_mm256_setzero_ps(); M];
            for (r, float) in floats.iter_mut().enumerate() {
                let sum = _mm256_add_epi32(scaled[r], _mm256_madd_epi16(sums[r], scale));
                *float = _mm256_cvtepi32_ps(sum);
            }
            floats
        }
    }
}

/// Each of 8 i8 twice, as i16: for the two lanes of an output.
#[inline(always)]
unsafe fn twice(scales: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(scales.cast()));
        _mm256_blend_epi16::<0xaa>(wide, _mm256_slli_epi32::<16>(wide))
    }
}

/// Adds four products per output into its two i16 lanes, for each row.
#[inline(always)]
unsafe fn add<Q: Quants, const G: usize, const M: usize>(
    sums: &mut [__m256i; M],
    quants: *const u8,
    x: Rows<M>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let weights = Q::group::<Avx2<false>, G>(quants);
        for (r, sum) in sums.iter_mut().enumerate() {
            let pairs = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(*x.group(r, G)));
            *sum = _mm256_add_epi16(*sum, pairs);
        }
    }
}
