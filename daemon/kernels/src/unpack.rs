//! Weights taken out of their packed bits, a vector of four per output at a time.
#![expect(unsafe_code, reason = "vectors are loaded from raw pointers")]

use super::{codebook::NONLINEAR, simd::Simd};

/// How a block of 32 weights per output is kept, and what must be subtracted from them.
pub(super) trait Quants {
    /// What the kernel takes off each weight: 0, 8, 16; or none, since they are signed bytes.
    const CENTRE: i32;
    const SIGNED: bool = false;

    /// The vector of weights 4·G .. 4·G + 4.
    ///
    /// # Safety
    /// As the methods of [`Simd`]; a whole block lies at `from`.
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes;
}

/// 4 bits; `CENTRE` 0 or 8.
pub(super) struct U4<const CENTRE: i32>;
/// 5 bits, around 16.
pub(super) struct U5;
/// 6 bits, around 32.
pub(super) struct U6;
/// Signed bytes.
pub(super) struct I8;
/// 4 bits that stand for signed bytes.
pub(super) struct Nonlinear;

impl<const CENTRE: i32> Quants for U4<CENTRE> {
    const CENTRE: i32 = CENTRE;

    #[inline(always)]
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes {
        // SAFETY: as this method.
        unsafe {
            let both = I::load(from.add(G / 2 * 4 * I::LANES));
            I::mask(
                if G.is_multiple_of(2) {
                    both
                } else {
                    I::shr::<4>(both)
                },
                15,
            )
        }
    }
}

impl Quants for U5 {
    const CENTRE: i32 = 16;

    #[inline(always)]
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes {
        // SAFETY: as this method.
        unsafe {
            let high = I::load(from.add(16 * I::LANES));
            let high = match G {
                0 => I::shl::<4>(high),
                1 => I::shl::<3>(high),
                2 => I::shl::<2>(high),
                3 => I::shl::<1>(high),
                4 => high,
                5 => I::shr::<1>(high),
                6 => I::shr::<2>(high),
                _ => I::shr::<3>(high),
            };
            I::or(U4::<0>::group::<I, G>(from), I::mask(high, 16))
        }
    }
}

impl Quants for U6 {
    const CENTRE: i32 = 32;

    #[inline(always)]
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes {
        // SAFETY: as this method.
        unsafe {
            let high = I::load(from.add((16 + G / 4 * 4) * I::LANES));
            let high = match G % 4 {
                0 => I::shl::<4>(high),
                1 => I::shl::<2>(high),
                2 => high,
                _ => I::shr::<2>(high),
            };
            I::or(U4::<0>::group::<I, G>(from), I::mask(high, 48))
        }
    }
}

impl Quants for I8 {
    const CENTRE: i32 = 0;
    const SIGNED: bool = true;

    #[inline(always)]
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes {
        // SAFETY: as this method.
        unsafe { I::load(from.add(G * 4 * I::LANES)) }
    }
}

impl Quants for Nonlinear {
    const CENTRE: i32 = 0;
    const SIGNED: bool = true;

    #[inline(always)]
    unsafe fn group<I: Simd, const G: usize>(from: *const u8) -> I::Bytes {
        // SAFETY: as this method.
        unsafe { I::look_up(&NONLINEAR, U4::<0>::group::<I, G>(from)) }
    }
}
