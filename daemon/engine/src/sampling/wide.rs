//! Plain code for wider vectors, where the CPU has them.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "calling what is compiled for instructions that were detected"
    )
)]

/// Runs `work` as the compiler makes it for the widest vectors of this CPU. The bits are the same: rounding is that of single
/// operations, of which none are fused, and there are only more of them at once.
///
/// What `work` calls must be `#[inline(always)]`, or it is compiled for the least CPU.
#[inline(always)]
pub(super) fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn compiled<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has it.
            return unsafe { compiled(work) };
        }
    }
    work()
}
