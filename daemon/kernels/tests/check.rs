//! The check of the machine at hand: it passes here, and says where something is wrong.

use tandem_kernels::check::{Products, TOLERANCE, products};
use tandem_kernels::{Format, Isa, PackError};

#[test]
fn every_kernel_of_this_machine_is_sound() {
    for isa in Isa::available() {
        for format in Format::ALL {
            let found = products(isa, format, 11).expect("the CPU has the set");
            assert!(found.is_sound(), "{isa} {format:?}: {found:?}");
        }
    }
}

#[test]
fn an_error_or_a_row_that_depends_on_others_is_not_sound() {
    let sound = Products {
        error: TOLERANCE,
        batch_invariant: true,
    };
    assert!(sound.is_sound());
    for error in [2.0 * TOLERANCE, f64::INFINITY, f64::NAN] {
        assert!(!Products { error, ..sound }.is_sound(), "{error}");
    }
    let batch_invariant = false;
    assert!(
        !Products {
            batch_invariant,
            ..sound
        }
        .is_sound()
    );
}

#[test]
fn a_set_that_the_cpu_lacks_is_refused() {
    let lacking = match cfg!(target_arch = "aarch64") {
        true => Isa::Avx2,
        false => Isa::NeonDotprod,
    };
    let refused = products(lacking, Format::Q4_0, 1);
    assert!(matches!(refused, Err(PackError::Isa { .. })), "{refused:?}");
}
