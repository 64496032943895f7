//! NEON: 8 outputs in two vectors of four; `sdot` adds four i8 · i8 products into an i32 lane, for one row; with i8mm,
//! `smmla` adds eight for two outputs and two rows at once.
//!
//! Both instructions are spelled in assembly, since the compiler's names for them are not stable.

use super::{Quants, Rows, Simd, U6, groups, intrinsics};
use std::arch::{aarch64::*, asm};

pub(in super::super) struct Neon<const I8MM: bool>;

type Bytes = [uint8x16_t; 2];
type Ints = [int32x4_t; 2];
type Floats = [float32x4_t; 2];

impl<const I8MM: bool> Simd for Neon<I8MM> {
    const LANES: usize = 8;
    const PAIRS: bool = false;
    type Bytes = Bytes;
    type Ints = Ints;
    type Floats = Floats;

    intrinsics! {
        fn load(from: *const u8) -> Bytes { [vld1q_u8(from), vld1q_u8(from.add(16))] }
        fn mask(v: Bytes, bits: u8) -> Bytes { [vandq_u8(v[0], vdupq_n_u8(bits)), vandq_u8(v[1], vdupq_n_u8(bits))] }
        fn or(a: Bytes, b: Bytes) -> Bytes { [vorrq_u8(a[0], b[0]), vorrq_u8(a[1], b[1])] }
        fn shl<const N>(v: Bytes) -> Bytes { [vshlq_n_u8::<N>(v[0]), vshlq_n_u8::<N>(v[1])] }
        fn shr<const N>(v: Bytes) -> Bytes { [vshrq_n_u8::<N>(v[0]), vshrq_n_u8::<N>(v[1])] }
        fn look_up(table: &[i8; 16], places: Bytes) -> Bytes {
            places.map(|places| vqtbl1q_u8(vld1q_u8(table.as_ptr().cast()), places))
        }
        fn f16s(from: *const u8) -> Floats { [widen(vld1_u8(from)), widen(vld1_u8(from.add(8)))] }
        fn u8s(from: *const u8) -> Floats { floats_of_u16(vmovl_u8(vld1_u8(from))) }
        fn splat(value: f32) -> Floats { [vdupq_n_f32(value); 2] }
        fn mul(a: Floats, b: Floats) -> Floats { [vmulq_f32(a[0], b[0]), vmulq_f32(a[1], b[1])] }
        fn fma(a: Floats, b: Floats, c: Floats) -> Floats { [vfmaq_f32(c[0], a[0], b[0]), vfmaq_f32(c[1], a[1], b[1])] }
        fn floats(v: Ints) -> Floats { [vcvtq_f32_s32(v[0]), vcvtq_f32_s32(v[1])] }
    }

    #[inline(always)]
    unsafe fn store(v: Floats, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            vst1q_f32(to, v[0]);
            vst1q_f32(to.add(4), v[1]);
        }
    }

    #[inline(always)]
    unsafe fn prefetch(line: *const u8) {
        // SAFETY: a hint, which never faults.
        unsafe {
            asm!("prfm pldl1keep, [{0}]", in(reg) line, options(readonly, nostack, preserves_flags))
        }
    }

    #[inline(always)]
    unsafe fn dots<Q: Quants, const M: usize>(quants: *const u8, x: Rows<M>) -> [Ints; M] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[vdupq_n_s32(0); 2]; M];
            groups!(G in whole { add::<Q, I8MM, G, M>(&mut sums, quants, x) });
            if I8MM {
                by_row(&mut sums);
            }
            for (r, sum) in sums.iter_mut().enumerate() {
                if Q::CENTRE != 0 {
                    let correction = vdupq_n_s32(*x.minus_8(r) * (Q::CENTRE / 8));
                    *sum = [vaddq_s32(sum[0], correction), vaddq_s32(sum[1], correction)];
                }
            }
            sums
        }
    }

    #[inline(always)]
    unsafe fn scaled_dots<const M: usize>(
        quants: *const u8,
        scales: *const u8,
        x: Rows<M>,
    ) -> [Floats; M] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut totals = [[vdupq_n_s32(0); 2]; M];
            for half in 0..2 {
                let mut sums = [[vdupq_n_s32(0); 2]; M];
                if half == 0 {
                    groups!(G in first { add::<U6, I8MM, G, M>(&mut sums, quants, x) });
                } else {
                    groups!(G in second { add::<U6, I8MM, G, M>(&mut sums, quants, x) });
                }
                if I8MM {
                    by_row(&mut sums);
                }
                let scales = vmovl_s8(vld1_s8(scales.add(8 * half).cast()));
                let scales = [vmovl_s16(vget_low_s16(scales)), vmovl_high_s16(scales)];
                for (r, total) in totals.iter_mut().enumerate() {
                    let correction = vdupq_n_s32(*x.minus_32(r, half));
                    for part in 0..2 {
                        let sum = vaddq_s32(sums[r][part], correction);
                        total[part] = vmlaq_s32(total[part], sum, scales[part]);
                    }
                }
            }
            let mut floats = [[vdupq_n_f32(0.0); 2]; M];
            for (float, total) in floats.iter_mut().zip(totals) {
                *float = [vcvtq_f32_s32(total[0]), vcvtq_f32_s32(total[1])];
            }
            floats
        }
    }
}

/// Adds four products per output for each row; with `I8MM`, at every other group eight for each pair of rows, whose
/// four vectors then hold two outputs by two rows each.
#[inline(always)]
unsafe fn add<Q: Quants, const I8MM: bool, const G: usize, const M: usize>(
    sums: &mut [Ints; M],
    quants: *const u8,
    x: Rows<M>,
) {
    let paired = if I8MM { M / 2 * 2 } else { 0 };
    // SAFETY: the caller's promise.
    unsafe {
        let weights = signed(Q::group::<Neon<I8MM>, G>(quants));
        for (r, sum) in sums.iter_mut().enumerate().skip(paired) {
            let x = vld1q_s8(x.group(r, G / 4 * 4).cast());
            for part in 0..2 {
                sum[part] = match G % 4 {
                    0 => sdot::<0>(sum[part], weights[part], x),
                    1 => sdot::<1>(sum[part], weights[part], x),
                    2 => sdot::<2>(sum[part], weights[part], x),
                    _ => sdot::<3>(sum[part], weights[part], x),
                };
            }
        }
        if paired == 0 || G % 2 == 0 {
            return;
        }
        // Eight weights of two outputs per vector, out of this group and the one before.
        let before = signed(before::<Q, I8MM, G>(quants));
        for part in 0..2 {
            let (a, b) = (
                vreinterpretq_s32_s8(before[part]),
                vreinterpretq_s32_s8(weights[part]),
            );
            let upper = vreinterpretq_s8_s32(vzip1q_s32(a, b));
            let lower = vreinterpretq_s8_s32(vzip2q_s32(a, b));
            let mut r = 0;
            while r < paired {
                let x = vcombine_s8(
                    vld1_s8(x.group(r, G - 1).cast()),
                    vld1_s8(x.group(r + 1, G - 1).cast()),
                );
                sums[r][part] = smmla(sums[r][part], upper, x);
                sums[r + 1][part] = smmla(sums[r + 1][part], lower, x);
                r += 2;
            }
        }
    }
}

/// The vector of the group before an odd one.
#[inline(always)]
unsafe fn before<Q: Quants, const I8MM: bool, const G: usize>(quants: *const u8) -> Bytes {
    // SAFETY: the caller's promise.
    unsafe {
        match G {
            1 => Q::group::<Neon<I8MM>, 0>(quants),
            3 => Q::group::<Neon<I8MM>, 2>(quants),
            5 => Q::group::<Neon<I8MM>, 4>(quants),
            _ => Q::group::<Neon<I8MM>, 6>(quants),
        }
    }
}

/// Turns the vectors of pairs, two outputs by two rows, into one row's outputs each.
#[inline(always)]
unsafe fn by_row<const M: usize>(sums: &mut [Ints; M]) {
    for pair in sums.as_chunks_mut::<2>().0 {
        for part in 0..2 {
            let (upper, lower) = (pair[0][part], pair[1][part]);
            // SAFETY: the caller's promise.
            unsafe {
                pair[0][part] = vuzp1q_s32(upper, lower);
                pair[1][part] = vuzp2q_s32(upper, lower);
            }
        }
    }
}

#[inline(always)]
unsafe fn signed(v: Bytes) -> [int8x16_t; 2] {
    // SAFETY: the caller's promise.
    unsafe { [vreinterpretq_s8_u8(v[0]), vreinterpretq_s8_u8(v[1])] }
}

#[inline(always)]
unsafe fn floats_of_u16(v: uint16x8_t) -> Floats {
    // SAFETY: the caller's promise.
    unsafe {
        [
            vcvtq_f32_u32(vmovl_u16(vget_low_u16(v))),
            vcvtq_f32_u32(vmovl_high_u16(v)),
        ]
    }
}

/// Four f16 as f32.
#[inline(always)]
unsafe fn widen(halves: uint8x8_t) -> float32x4_t {
    let wide;
    // SAFETY: the caller's promise; only registers are touched.
    unsafe {
        asm!("fcvtl {0:v}.4s, {1:v}.4h", out(vreg) wide, in(vreg) halves, options(pure, nomem, nostack, preserves_flags))
    };
    wide
}

/// Per lane, adds the products of four weights with the four activations of lane `LANE`.
#[inline(always)]
unsafe fn sdot<const LANE: usize>(
    mut sum: int32x4_t,
    weights: int8x16_t,
    x: int8x16_t,
) -> int32x4_t {
    // SAFETY: the caller's promise; only registers are touched.
    unsafe {
        asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.4b[{3}]", inout(vreg) sum, in(vreg) weights, in(vreg) x, const LANE,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Adds the 2 × 2 products of two rows of eight with two rows of eight.
#[inline(always)]
unsafe fn smmla(mut sum: int32x4_t, weights: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: the caller's promise; only registers are touched.
    unsafe {
        asm!("smmla {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sum, in(vreg) weights, in(vreg) x,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}
