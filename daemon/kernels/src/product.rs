//! The kernel: a strip of outputs times a chunk of rows. Written once over [`Simd`]; a format is a way to keep quants
//! and a way to keep scales.
//!
//! Batch invariance lives here: per row and output, blocks are added in order, by the same operations whatever M is.
#![expect(unsafe_code, reason = "vectors are loaded from raw pointers")]

use super::{
    Format,
    layout::Layout,
    simd::{Rows, Simd},
    unpack::{I8, Nonlinear, Quants, U4, U5},
};

/// A strip and a chunk, ready to multiply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// The strip.
    pub(super) weights: *const u8,
    /// Super-blocks of the strip.
    pub(super) supers: usize,
    /// The chunk's activations.
    pub(super) x: *const u8,
    /// The chunk's first row, the strip's first output.
    pub(super) out: *mut f32,
    /// From row to row of the result, in elements.
    pub(super) stride: usize,
    /// How many of the strip's outputs there are: all lanes, or fewer in the last strip.
    pub(super) outputs: usize,
}

/// How far ahead of the kernel weights are fetched, in bytes. With more rows fewer loads fit into the CPU's window of
/// instructions, too few to keep the memory busy by themselves.
const AHEAD: usize = 4096;

/// A format's arithmetic.
pub(super) trait Weights {
    const FORMAT: Format;
    const LAYOUT: Layout = Layout::of(Self::FORMAT);

    /// Adds the products of one block to the sums.
    ///
    /// # Safety
    /// As the methods of [`Simd`]: a super-block's head lies at `head`, a block of it at `block`, activations at `x`.
    unsafe fn add<I: Simd, const M: usize>(
        head: *const u8,
        block: *const u8,
        x: Rows<M>,
        sums: [I::Floats; M],
    ) -> [I::Floats; M];
}

/// Multiplies a strip with M rows.
///
/// # Safety
/// The CPU has the instructions of `I`; the job's pointers cover the strip, the chunk of M rows and the outputs.
#[inline(always)]
pub(super) unsafe fn multiply<I: Simd, W: Weights, const M: usize>(job: &Job) {
    // SAFETY: as this function; all offsets stay within the strip and the chunk.
    unsafe {
        let layout = const { W::LAYOUT };
        let mut sums = [I::splat(0.0); M];
        let mut x = Rows::<M>(job.x);
        let mut head = job.weights;
        for _ in 0..job.supers {
            let mut block = head.add(I::LANES * layout.head);
            for _ in 0..layout.blocks {
                let bytes = I::LANES * (layout.params + layout.quants);
                for line in 0..bytes.div_ceil(64) {
                    I::prefetch(block.wrapping_add(AHEAD + 64 * line));
                }
                sums = W::add::<I, M>(head, block, x, sums);
                block = block.add(bytes);
                x = x.next();
            }
            head = block;
        }
        for (r, sum) in sums.into_iter().enumerate() {
            let out = job.out.add(r * job.stride);
            if job.outputs == I::LANES {
                I::store(sum, out);
            } else {
                let mut all = [0f32; 16];
                I::store(sum, all.as_mut_ptr());
                std::ptr::copy_nonoverlapping(all.as_ptr(), out, job.outputs);
            }
        }
    }
}

/// Scale and minimum of a block's weights.
trait Scales {
    /// Whether there is a minimum.
    const MINIMUM: bool = true;

    /// Loads both; without a minimum, the second is unspecified.
    unsafe fn load<I: Simd>(head: *const u8, params: *const u8) -> (I::Floats, I::Floats);
}

/// f16 scale.
struct Plain;
/// f16 scale and minimum.
struct WithMinimum;
/// u6 scale and minimum in units of the head's.
struct Nested;
/// u6 scale around 32, in units of the head's.
struct Centred;

impl Scales for Plain {
    const MINIMUM: bool = false;

    #[inline(always)]
    unsafe fn load<I: Simd>(_head: *const u8, params: *const u8) -> (I::Floats, I::Floats) {
        // SAFETY: as `Weights::add`.
        let d = unsafe { I::f16s(params) };
        (d, d)
    }
}

impl Scales for WithMinimum {
    #[inline(always)]
    unsafe fn load<I: Simd>(_head: *const u8, params: *const u8) -> (I::Floats, I::Floats) {
        // SAFETY: as `Weights::add`.
        unsafe { (I::f16s(params), I::f16s(params.add(2 * I::LANES))) }
    }
}

impl Scales for Nested {
    #[inline(always)]
    unsafe fn load<I: Simd>(head: *const u8, params: *const u8) -> (I::Floats, I::Floats) {
        // SAFETY: as `Weights::add`.
        unsafe {
            let (d, m) = (
                I::f16s(head),
                I::mul(I::f16s(head.add(2 * I::LANES)), I::splat(-1.0)),
            );
            (
                I::mul(d, I::u8s(params)),
                I::mul(m, I::u8s(params.add(I::LANES))),
            )
        }
    }
}

impl Scales for Centred {
    const MINIMUM: bool = false;

    #[inline(always)]
    unsafe fn load<I: Simd>(head: *const u8, params: *const u8) -> (I::Floats, I::Floats) {
        // SAFETY: as `Weights::add`.
        unsafe {
            let scale = I::fma(I::u8s(params), I::splat(1.0), I::splat(-32.0));
            let d = I::mul(I::f16s(head), scale);
            (d, d)
        }
    }
}

/// Adds scale · activation scale · Σ quant · activation, and minimum · Σ activations where there is one.
#[inline(always)]
unsafe fn add_affine<I: Simd, W: Weights, Q: Quants, S: Scales, const M: usize>(
    head: *const u8,
    block: *const u8,
    x: Rows<M>,
    mut sums: [I::Floats; M],
) -> [I::Floats; M] {
    // SAFETY: as `Weights::add`.
    unsafe {
        let dots = I::dots::<Q, M>(block.add(I::LANES * const { W::LAYOUT.params }), x);
        let (d, mut m) = S::load::<I>(head, block);
        if S::MINIMUM && Q::CENTRE != 0 {
            m = I::fma(d, I::splat(Q::CENTRE as f32), m);
        }
        for r in 0..M {
            let scale = I::mul(d, I::splat(*x.scale(r)));
            sums[r] = I::fma(I::floats(dots[r]), scale, sums[r]);
            if S::MINIMUM {
                sums[r] = I::fma(m, I::splat(*x.sum(r)), sums[r]);
            }
        }
        sums
    }
}

macro_rules! affine {
    ($($(#[$doc:meta])* $name:ident: $quants:ty, $scales:ty;)*) => { $(
        $(#[$doc])*
        pub(super) struct $name;

        impl Weights for $name {
            const FORMAT: Format = Format::$name;

            #[inline(always)]
            unsafe fn add<I: Simd, const M: usize>(
                head: *const u8,
                block: *const u8,
                x: Rows<M>,
                sums: [I::Floats; M],
            ) -> [I::Floats; M] {
                // SAFETY: as this method.
                unsafe { add_affine::<I, Self, $quants, $scales, M>(head, block, x, sums) }
            }
        }
    )* };
}

affine! {
    Q4_0: U4<8>, Plain;
    Q4_1: U4<0>, WithMinimum;
    Q5_0: U5, Plain;
    Q5_1: U5, WithMinimum;
    Q8_0: I8, Plain;
    IQ4NL: Nonlinear, Plain;
}
affine! {
    Q4K: U4<0>, Nested;
    Q5K: U5, Nested;
    IQ4XS: Nonlinear, Centred;
}

/// Scales per half block, in units of the head's.
pub(super) struct Q6K;

impl Weights for Q6K {
    const FORMAT: Format = Format::Q6K;

    #[inline(always)]
    unsafe fn add<I: Simd, const M: usize>(
        head: *const u8,
        block: *const u8,
        x: Rows<M>,
        mut sums: [I::Floats; M],
    ) -> [I::Floats; M] {
        // SAFETY: as this method.
        unsafe {
            let dots = I::scaled_dots::<M>(
                block.add(I::LANES * const { Self::LAYOUT.params }),
                block,
                x,
            );
            let d = I::f16s(head);
            for r in 0..M {
                sums[r] = I::fma(dots[r], I::mul(d, I::splat(*x.scale(r))), sums[r]);
            }
            sums
        }
    }
}
