//! Plain Rust on arrays: the reference, and the path of CPUs without a better one. Products and sums are rounded apart.

use super::{Quants, Rows, Simd, U6, groups};
use half::f16;

pub(in super::super) struct Portable;

const LANES: usize = 8;

impl Simd for Portable {
    const LANES: usize = LANES;
    const PAIRS: bool = false;
    type Bytes = [u8; 4 * LANES];
    type Ints = [i32; LANES];
    type Floats = [f32; LANES];

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self::Bytes {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self::Bytes>().read() }
    }
    #[inline(always)]
    unsafe fn mask(v: Self::Bytes, bits: u8) -> Self::Bytes {
        v.map(|byte| byte & bits)
    }
    #[inline(always)]
    unsafe fn or(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        std::array::from_fn(|i| a[i] | b[i])
    }
    #[inline(always)]
    unsafe fn shl<const N: i32>(v: Self::Bytes) -> Self::Bytes {
        v.map(|byte| byte << N)
    }
    #[inline(always)]
    unsafe fn shr<const N: i32>(v: Self::Bytes) -> Self::Bytes {
        v.map(|byte| byte >> N)
    }
    #[inline(always)]
    unsafe fn look_up(table: &[i8; 16], places: Self::Bytes) -> Self::Bytes {
        places.map(|place| table[usize::from(place & 15)] as u8)
    }

    #[inline(always)]
    unsafe fn f16s(from: *const u8) -> Self::Floats {
        // SAFETY: the caller's promise.
        let bytes = unsafe { from.cast::<[[u8; 2]; LANES]>().read() };
        bytes.map(|bits| f16::from_le_bytes(bits).to_f32())
    }
    #[inline(always)]
    unsafe fn u8s(from: *const u8) -> Self::Floats {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<[u8; LANES]>().read() }.map(f32::from)
    }
    #[inline(always)]
    unsafe fn splat(value: f32) -> Self::Floats {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn floats(v: Self::Ints) -> Self::Floats {
        v.map(|value| value as f32)
    }
    #[inline(always)]
    unsafe fn store(v: Self::Floats, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<Self::Floats>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn prefetch(_line: *const u8) {}

    #[inline(always)]
    unsafe fn dots<Q: Quants, const M: usize>(quants: *const u8, x: Rows<M>) -> [Self::Ints; M] {
        let mut sums = [[0; LANES]; M];
        // SAFETY: the caller's promise.
        unsafe {
            groups!(G in whole { add::<Q, M>(&mut sums, Q::group::<Self, G>(quants), x, G) });
        }
        sums
    }

    #[inline(always)]
    unsafe fn scaled_dots<const M: usize>(
        quants: *const u8,
        scales: *const u8,
        x: Rows<M>,
    ) -> [Self::Floats; M] {
        let mut halves = [[[0; LANES]; M]; 2];
        // SAFETY: the caller's promise.
        let scales = unsafe {
            groups!(G in first { add::<U6, M>(&mut halves[0], U6::group::<Self, G>(quants), x, G) });
            groups!(G in second { add::<U6, M>(&mut halves[1], U6::group::<Self, G>(quants), x, G) });
            scales.cast::<[[i8; LANES]; 2]>().read()
        };
        std::array::from_fn(|r| {
            std::array::from_fn(|lane| {
                (0..2)
                    .map(|half| i32::from(scales[half][lane]) * halves[half][r][lane])
                    .sum::<i32>() as f32
            })
        })
    }
}

/// Adds the products of four weights per output, each taken off its centre.
#[inline(always)]
unsafe fn add<Q: Quants, const M: usize>(
    sums: &mut [[i32; LANES]; M],
    weights: [u8; 4 * LANES],
    x: Rows<M>,
    group: usize,
) {
    for (r, sums) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let x = unsafe { x.group(r, group).cast::<[i8; 4]>().read() };
        for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<4>().0) {
            for (&weight, &x) in weights.iter().zip(&x) {
                let weight = if Q::SIGNED {
                    i32::from(weight as i8)
                } else {
                    i32::from(weight) - Q::CENTRE
                };
                *sum += weight * i32::from(x);
            }
        }
    }
}
