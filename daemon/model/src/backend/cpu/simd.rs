//! Sixteen f32 lanes, by whatever the running CPU has.
//!
//! A type that implements [`Simd`] exists only where its instructions do, so its operations are safe to call. Code over
//! it is written once, marked `#[inline(always)]`, and compiled once per instruction set by [`Isa::run`].

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Lanes of a vector.
pub(super) const LANES: usize = 16;

/// A proof that an instruction set is there, and its operations. Every lane is computed by itself.
pub(super) trait Simd: Copy {
    /// Sixteen lanes.
    type V: Copy;
    /// Whether the registers hold some thirty vectors rather than eight.
    const ROOMY: bool;

    fn splat(self, x: f32) -> Self::V;
    fn load(self, from: &[f32; LANES]) -> Self::V;
    fn store(self, v: Self::V, to: &mut [f32; LANES]);
    /// Widens sixteen halves.
    fn load_f16(self, from: &[u16; LANES]) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// Multiplies `a` by 2ⁿ, where the low bits of the floats in `n` hold the integer n.
    fn scale_by_low_bits(self, a: Self::V, n: Self::V) -> Self::V;

    /// The sum of all lanes, halves on halves.
    #[inline(always)]
    fn sum(self, v: Self::V) -> f32 {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
            width /= 2;
        }
        lanes[0]
    }
}

/// Code over [`Simd`].
pub(super) trait Kernel {
    /// What it returns.
    type Output;
    /// Must be `#[inline(always)]`, or its vectors are compiled for the least CPU.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The instruction sets that there is code for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// AVX-512F.
    #[cfg(target_arch = "x86_64")]
    Avx512(x86::Avx512),
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
    /// NEON.
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
    /// Whatever the compiler makes of plain Rust.
    #[cfg_attr(
        all(target_arch = "aarch64", not(test)),
        expect(dead_code, reason = "every CPU of the architecture has NEON")
    )]
    Portable,
}

impl Isa {
    /// The best that this CPU has.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = x86::Avx512::detect().map(Self::Avx512);
            avx512
                .or_else(|| x86::Avx2::detect().map(Self::Avx2))
                .unwrap_or(Self::Portable)
        }
        #[cfg(target_arch = "aarch64")]
        {
            Self::Neon(neon::Neon::new())
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            Self::Portable
        }
    }

    /// All that this CPU can run, the slowest first.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        all.extend(x86::Avx2::detect().map(Self::Avx2));
        if !all.contains(&Self::detect()) {
            all.push(Self::detect());
        }
        all
    }

    /// Runs code compiled for the instruction set.
    #[inline]
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => kernel.run(simd),
            Self::Portable => kernel.run(portable::Portable),
        }
    }
}

/// eˣ to a few units in the last place, for x clamped to where the result is a normal number.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::V) -> S::V {
    // Adding it rounds to an integer, which ends up in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first with few bits so that its multiples are exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Minimax for (eʳ − 1 − r) / r² on |r| ≤ ln 2 / 2.
    const POLYNOMIAL: [f32; 6] = [
        1.987_569_1e-4,
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        0.166_666_65,
        0.5,
    ];
    let x = simd.min(simd.max(x, simd.splat(-87.0)), simd.splat(88.0));
    let shifted = simd.fma(x, simd.splat(std::f32::consts::LOG2_E), simd.splat(ROUND));
    let n = simd.sub(shifted, simd.splat(ROUND));
    let r = simd.fma(n, simd.splat(-LN2_HIGH), x);
    let r = simd.fma(n, simd.splat(-LN2_LOW), r);
    let mut p = simd.splat(POLYNOMIAL[0]);
    for c in &POLYNOMIAL[1..] {
        p = simd.fma(p, r, simd.splat(*c));
    }
    let p = simd.fma(p, simd.mul(r, r), simd.add(r, simd.splat(1.0)));
    simd.scale_by_low_bits(p, shifted)
}
