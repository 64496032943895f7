//! Plain code for wider vectors, where the CPU has them.

/// Makes a function that is another one as the compiler makes it for the widest vectors of this CPU. The bits are the same:
/// rounding is that of single operations, of which none are fused, and there are only more of them at once.
///
/// The other one, and all that it calls often, is to be `#[inline(always)]`: what is not inlined is compiled for the least CPU.
/// So this cannot be a function that takes what to do: a closure's body is not sure to be inlined.
#[macro_export]
macro_rules! wide {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident[$($generics:tt)*](
        $($argument:ident: $type:ty),*
    ) -> $out:ty = $plain:path) => {
        $(#[$attribute])*
        #[cfg_attr(
            target_arch = "x86_64",
            expect(
                unsafe_code,
                reason = "calling what is compiled for instructions that were detected"
            )
        )]
        $visibility fn $name<$($generics)*>($($argument: $type),*) -> $out {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2<$($generics)*>($($argument: $type),*) -> $out {
                    $plain($($argument),*)
                }
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn with_avx512<$($generics)*>($($argument: $type),*) -> $out {
                    $plain($($argument),*)
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the CPU has them.
                    return unsafe { with_avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the CPU has it.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            $plain($($argument),*)
        }
    };
}
