//! Which code an input reached, by the counters that `-C instrument-coverage` compiles in.
#![cfg_attr(
    feature = "coverage",
    expect(
        unsafe_code,
        reason = "the counters are memory that the compiler's run time owns"
    )
)]

/// What all inputs so far have reached.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// For each counter a bit per magnitude that it has had.
    #[cfg(feature = "coverage")]
    seen: Vec<u8>,
    /// Counters that were ever above 0.
    pub(crate) reached: usize,
}

#[cfg(feature = "coverage")]
mod counters {
    // The interface of LLVM's profiling run time, as its header InstrProfiling.h declares it:
    //   uint64_t *__llvm_profile_begin_counters(void);
    //   uint64_t *__llvm_profile_end_counters(void);
    unsafe extern "C" {
        safe fn __llvm_profile_begin_counters() -> *mut u64;
        safe fn __llvm_profile_end_counters() -> *mut u64;
    }

    /// Calls `each` with all counters of this program. Other threads may count meanwhile.
    pub(super) fn all(mut each: impl FnMut(&[std::cell::Cell<u64>])) {
        let (begin, end) = (
            __llvm_profile_begin_counters(),
            __llvm_profile_end_counters(),
        );
        let count = (end as usize - begin as usize) / size_of::<u64>();
        // SAFETY: the run time says that this range is counters, for as long as the process lives. Code that counts writes to
        // them by plain instructions; a count that is lost to that loses an input, and nothing else depends on it.
        each(unsafe { std::slice::from_raw_parts(begin.cast(), count) });
    }
}

impl Coverage {
    /// Forgets what was counted, before an input runs.
    #[cfg(feature = "coverage")]
    pub(crate) fn begin() {
        counters::all(|counters| counters.iter().for_each(|counter| counter.set(0)));
    }

    #[cfg(not(feature = "coverage"))]
    pub(crate) fn begin() {}

    /// Adds what was counted since; says whether any of it is new.
    #[cfg(feature = "coverage")]
    pub(crate) fn add(&mut self) -> bool {
        let mut is_new = false;
        counters::all(|counters| {
            self.seen.resize(counters.len(), 0);
            for (counter, seen) in counters.iter().zip(&mut self.seen) {
                let count = counter.get();
                if count == 0 {
                    continue;
                }
                let bit = 1u8 << (count.ilog2() / 2).min(7);
                if *seen & bit == 0 {
                    self.reached += usize::from(*seen == 0);
                    *seen |= bit;
                    is_new = true;
                }
            }
        });
        is_new
    }

    #[cfg(not(feature = "coverage"))]
    #[expect(clippy::unused_self, reason = "with counters it remembers them")]
    pub(crate) fn add(&mut self) -> bool {
        false
    }
}
