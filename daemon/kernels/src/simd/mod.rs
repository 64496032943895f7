//! What the kernels ask of an instruction set, and the sets there are. One generic kernel over these operations serves
//! every format; only sums of integer products are written per set, since that is where sets differ.
#![expect(unsafe_code, reason = "intrinsics and raw pointers")]

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "x86_64")]
mod avxvnni;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
pub(super) mod portable;

use super::{
    layout::BLOCK,
    rows::ROW_BLOCK,
    unpack::{Quants, U6},
};

/// Vectors of `LANES` 32-bit values; lane i belongs to output i of a strip.
///
/// # Safety (of every method)
/// The CPU has the instructions, and pointers are valid for a vector's worth of the element named.
pub(super) trait Simd {
    const LANES: usize;
    /// Whether corrections of activations are two i16 (else one i32).
    const PAIRS: bool;
    type Bytes: Copy;
    type Ints: Copy;
    type Floats: Copy;

    unsafe fn load(from: *const u8) -> Self::Bytes;
    unsafe fn mask(v: Self::Bytes, bits: u8) -> Self::Bytes;
    unsafe fn or(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Shifts left; the low bits may come from a neighbour byte, so mask what is used.
    unsafe fn shl<const N: i32>(v: Self::Bytes) -> Self::Bytes;
    /// Shifts right (N > 0), likewise.
    unsafe fn shr<const N: i32>(v: Self::Bytes) -> Self::Bytes;

    /// The bytes at these places, each below 16.
    unsafe fn look_up(table: &[i8; 16], places: Self::Bytes) -> Self::Bytes;

    /// Loads f16.
    unsafe fn f16s(from: *const u8) -> Self::Floats;
    /// Loads u8.
    unsafe fn u8s(from: *const u8) -> Self::Floats;
    unsafe fn splat(value: f32) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// a · b + c.
    unsafe fn fma(a: Self::Floats, b: Self::Floats, c: Self::Floats) -> Self::Floats;
    unsafe fn floats(v: Self::Ints) -> Self::Floats;
    unsafe fn store(v: Self::Floats, to: *mut f32);
    /// Asks for a cache line that will be read soon; any address will do.
    unsafe fn prefetch(line: *const u8);

    /// Σ (weight − `Q::CENTRE`) · activation over a block, for each row.
    unsafe fn dots<Q: Quants, const M: usize>(quants: *const u8, x: Rows<M>) -> [Self::Ints; M];
    /// Σ scale of the half · Σ (weight − 32) · activation over a block, for each row; i8 scales at `scales`.
    unsafe fn scaled_dots<const M: usize>(
        quants: *const u8,
        scales: *const u8,
        x: Rows<M>,
    ) -> [Self::Floats; M];
}

/// A block of 32 activations of M rows, as `rows` lays it out.
#[derive(Clone, Copy)]
pub(super) struct Rows<const M: usize>(pub(super) *const u8);

impl<const M: usize> Rows<M> {
    /// The 4 activations of row `r` from 4·`group` on.
    #[inline(always)]
    pub(super) fn group(self, r: usize, group: usize) -> *const i32 {
        self.0.wrapping_add(r * BLOCK + 4 * group).cast()
    }

    #[inline(always)]
    fn side(self, word: usize) -> *const i32 {
        self.0.wrapping_add(M * BLOCK + 4 * word).cast()
    }

    #[inline(always)]
    pub(super) fn scale(self, r: usize) -> *const f32 {
        self.side(r).cast()
    }

    /// Scale · sum of the block.
    #[inline(always)]
    pub(super) fn sum(self, r: usize) -> *const f32 {
        self.side(M + r).cast()
    }

    /// −8 · sum of the block.
    #[inline(always)]
    pub(super) fn minus_8(self, r: usize) -> *const i32 {
        self.side(2 * M + r)
    }

    /// −32 · sum of a half of the block.
    #[inline(always)]
    pub(super) fn minus_32(self, r: usize, half: usize) -> *const i32 {
        self.side(3 * M + 2 * r + half)
    }

    #[inline(always)]
    pub(super) fn next(self) -> Self {
        Rows(self.0.wrapping_add(M * ROW_BLOCK))
    }
}

/// Repeats a body for the groups of four of a block, each a constant, so that shifts and lanes are immediates.
macro_rules! groups {
    (@ $g:ident $body:block $($n:literal)*) => { $({ const $g: usize = $n; $body })* };
    ($g:ident in whole $body:block) => { groups!(@ $g $body 0 1 2 3 4 5 6 7) };
    ($g:ident in first $body:block) => { groups!(@ $g $body 0 1 2 3) };
    ($g:ident in second $body:block) => { groups!(@ $g $body 4 5 6 7) };
}
use groups;

/// Declares operations that are one expression of intrinsics.
macro_rules! intrinsics {
    ($(fn $name:ident$(<const $n:ident>)?($($arg:ident: $ty:ty),*) $(-> $ret:ty)? { $body:expr })*) => { $(
        #[inline(always)]
        unsafe fn $name$(<const $n: i32>)?($($arg: $ty),*) $(-> $ret)? {
            // SAFETY: callers of this trait run on a CPU with these instructions and pass valid pointers.
            unsafe { $body }
        }
    )* };
}
use intrinsics;
