//! Instruction sets: which the CPU has, and which function runs a kernel on each.
#![expect(
    unsafe_code,
    reason = "functions compiled for instructions that only some CPUs have"
)]

use super::{
    Format,
    product::{self, Job, Weights},
    rows,
    simd::{Simd, portable::Portable},
};
use std::{fmt, sync::OnceLock};

/// An instruction set that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain Rust; any CPU.
    Portable,
    /// x86-64 with AVX2, FMA and F16C.
    Avx2,
    /// The same with AVX-VNNI.
    AvxVnni,
    /// x86-64 with AVX-512 (F, BW, VL) and VNNI.
    Avx512Vnni,
    /// 64-bit Arm with dot products.
    NeonDotprod,
    /// 64-bit Arm with dot products and 8-bit matrix products.
    NeonI8mm,
}

/// The best instruction set of the running CPU.
pub fn isa() -> Isa {
    static BEST: OnceLock<Isa> = OnceLock::new();
    *BEST.get_or_init(|| Isa::available().last().copied().unwrap_or(Isa::Portable))
}

impl Isa {
    /// What the running CPU can execute, from the slowest to the fastest.
    pub fn available() -> Vec<Isa> {
        let mut sets = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
            {
                sets.push(Isa::Avx2);
                if is_x86_feature_detected!("avxvnni") {
                    sets.push(Isa::AvxVnni);
                }
                if is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
                {
                    sets.push(Isa::Avx512Vnni);
                }
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            sets.push(Isa::NeonDotprod);
            if std::arch::is_aarch64_feature_detected!("i8mm") {
                sets.push(Isa::NeonI8mm);
            }
        }
        sets
    }

    /// Its name in reports and keys, such as `avx2`.
    pub const fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::AvxVnni => "avx-vnni",
            Isa::Avx512Vnni => "avx512-vnni",
            Isa::NeonDotprod => "neon-dotprod",
            Isa::NeonI8mm => "neon-i8mm",
        }
    }

    /// Outputs per strip of the packed form.
    pub(super) const fn lanes(self) -> usize {
        match self {
            Isa::Portable | Isa::Avx2 | Isa::AvxVnni | Isa::NeonDotprod | Isa::NeonI8mm => 8,
            Isa::Avx512Vnni => 16,
        }
    }

    /// The functions that multiply a strip of `format` with 1, 2 … 8 rows.
    pub(super) fn kernels(self, format: Format) -> Kernels {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => kernels_of!(format, avx2),
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => kernels_of!(format, avxvnni),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => kernels_of!(format, avx512),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonDotprod => kernels_of!(format, dotprod),
            #[cfg(target_arch = "aarch64")]
            Isa::NeonI8mm => kernels_of!(format, i8mm),
            _ => kernels_of!(format, portable),
        }
    }

    /// Quantizes a row for this set's kernels; see [`rows::quantize`].
    ///
    /// # Safety
    /// The CPU has the instructions; otherwise as there.
    pub(super) unsafe fn quantize(self, values: &[f32], chunk: *mut u8, len: usize, r: usize) {
        // SAFETY: as this function.
        unsafe {
            match self {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => quantize_avx2(values, chunk, len, r),
                #[cfg(target_arch = "x86_64")]
                Isa::AvxVnni => quantize_avxvnni(values, chunk, len, r),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512Vnni => quantize_avx512(values, chunk, len, r),
                #[cfg(target_arch = "aarch64")]
                Isa::NeonDotprod => quantize_dotprod(values, chunk, len, r),
                #[cfg(target_arch = "aarch64")]
                Isa::NeonI8mm => quantize_i8mm(values, chunk, len, r),
                _ => quantize_portable(values, chunk, len, r),
            }
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Multiplies a strip with a fixed number of rows.
///
/// # Safety
/// As [`product::multiply`].
pub(super) type Kernel = unsafe fn(&Job);
/// By the number of rows less one.
pub(super) type Kernels = [Kernel; rows::CHUNK];

/// The table of one instruction set's kernels for a format.
macro_rules! kernels_of {
    ($format:expr, $strip:ident) => {
        match $format {
            Format::Q4_0 => kernels_of!(@ $strip, Q4_0),
            Format::Q4_1 => kernels_of!(@ $strip, Q4_1),
            Format::Q5_0 => kernels_of!(@ $strip, Q5_0),
            Format::Q5_1 => kernels_of!(@ $strip, Q5_1),
            Format::Q8_0 => kernels_of!(@ $strip, Q8_0),
            Format::Q4K => kernels_of!(@ $strip, Q4K),
            Format::Q5K => kernels_of!(@ $strip, Q5K),
            Format::Q6K => kernels_of!(@ $strip, Q6K),
            Format::IQ4NL => kernels_of!(@ $strip, IQ4NL),
            Format::IQ4XS => kernels_of!(@ $strip, IQ4XS),
            _ => unreachable!("formats that take floats have no integer kernel"),
        }
    };
    (@ $strip:ident, $weights:ident) => {{
        use product::$weights as W;
        [$strip::<W, 1>, $strip::<W, 2>, $strip::<W, 3>, $strip::<W, 4>,
         $strip::<W, 5>, $strip::<W, 6>, $strip::<W, 7>, $strip::<W, 8>]
    }};
}
use kernels_of;

/// Compiles the kernel, and the quantization of rows, for an instruction set.
macro_rules! compile {
    ($($(#[$meta:meta])* $strip:ident, $quantize:ident: $simd:ty;)*) => { $(
        $(#[$meta])*
        unsafe fn $strip<W: Weights, const M: usize>(job: &Job) {
            // SAFETY: as `product::multiply`.
            unsafe { product::multiply::<$simd, W, M>(job) }
        }

        $(#[$meta])*
        unsafe fn $quantize(values: &[f32], chunk: *mut u8, len: usize, r: usize) {
            // SAFETY: as `rows::quantize`.
            unsafe { rows::quantize::<{ <$simd>::PAIRS }>(values, chunk, len, r) }
        }
    )* };
}

compile! {
    portable, quantize_portable: Portable;
}
#[cfg(target_arch = "x86_64")]
compile! {
    #[target_feature(enable = "avx2,fma,f16c")]
    avx2, quantize_avx2: super::simd::avx2::Avx2<false>;
    #[target_feature(enable = "avx2,fma,f16c,avxvnni")]
    avxvnni, quantize_avxvnni: super::simd::avx2::Avx2<true>;
    #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512vnni")]
    avx512, quantize_avx512: super::simd::avx512::Avx512;
}
#[cfg(target_arch = "aarch64")]
compile! {
    #[target_feature(enable = "neon,dotprod")]
    dotprod, quantize_dotprod: super::simd::neon::Neon<false>;
    #[target_feature(enable = "neon,dotprod,i8mm")]
    i8mm, quantize_i8mm: super::simd::neon::Neon<true>;
}
