//! Own `exp` and reductions against the standard library.

use super::{
    argmax, exp_all, exp_all_inline, exp_nonpositive, max, max_inline, sum, sum_exp,
    sum_exp_inline, sum_inline,
};

#[test]
fn exp_is_close_everywhere_and_exact_at_zero() {
    assert_eq!(exp_nonpositive(0.0), 1.0);
    assert_eq!(exp_nonpositive(-0.0), 1.0);
    for step in 0..870_000 {
        let x = -(step as f32) / 10_000.0;
        let (got, wanted) = (f64::from(exp_nonpositive(x)), f64::from(x).exp());
        assert!(
            (got - wanted).abs() <= 2e-7 * wanted,
            "e^{x}: got {got}, wanted {wanted}"
        );
    }
    for x in [-87.1, -1e30, f32::MIN, f32::NEG_INFINITY, f32::NAN] {
        assert_eq!(exp_nonpositive(x), 0.0, "{x}");
    }
}

#[test]
fn reductions_cover_every_element() {
    for length in 1..70 {
        for place in 0..length {
            let mut values = vec![1.0_f32; length];
            values[place] = 3.0;
            assert_eq!(sum(&values), length as f64 + 2.0);
            assert_eq!((max(&values), argmax(&values)), (3.0, place));
        }
    }
}

#[test]
fn the_lowest_of_equals_wins_across_blocks() {
    let mut row = vec![f32::NAN; 5000];
    for place in [4999, 3000, 2047, 1024, 1023, 7] {
        row[place] = 1.0;
        assert_eq!(argmax(&row), place);
    }
}

#[test]
fn nan_is_never_the_largest() {
    let row = [f32::NAN, -3.0, f32::NAN, -2.0, -2.0, f32::NAN];
    assert_eq!((max(&row), argmax(&row)), (-2.0, 3));
    assert_eq!(argmax(&[f32::NAN; 20]), 0);
    assert_eq!(argmax(&[f32::NEG_INFINITY; 3]), 0);
    assert_eq!(argmax(&[]), 0);
    assert_eq!(argmax(&[1.0, f32::INFINITY, f32::NAN]), 1);
}

/// The plain code of each function against what this CPU has, on values of all sizes and lengths that fill no vector.
#[test]
fn wider_vectors_give_the_same_bits() {
    let value = |at: usize| ((at * 7919 % 4093) as f32 - 3000.0) / 37.0;
    for length in [0, 1, 7, 16, 63, 500, 513, 4099] {
        let values: Vec<f32> = (0..length).map(value).collect();
        let peak = max(&values);
        assert_eq!(peak.to_bits(), max_inline(&values).to_bits());
        assert_eq!(sum(&values).to_bits(), sum_inline(&values).to_bits());
        let (wide, plain) = (sum_exp(&values, peak), sum_exp_inline(&values, peak));
        assert_eq!(wide.to_bits(), plain.to_bits());
        let (mut wide, mut plain) = (values.clone(), values);
        exp_all(&mut wide, peak, 0.7);
        exp_all_inline(&mut plain, peak, 0.7);
        assert!(
            wide.iter()
                .zip(&plain)
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
    }
}
