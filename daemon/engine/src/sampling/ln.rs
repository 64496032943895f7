//! `ln` that gives the same bits everywhere, as `tandem_model::math` has `exp`, and for the same reason.

/// -ln(1 - w) for w in (0, 1], within 1e-15 of the true value relatively; infinite at 1.
pub(super) fn neg_ln_one_minus(w: f64) -> f64 {
    // ln(a) = 2·artanh((a - 1) / (a + 1)); the series below reaches 1e-18 for |s| ≤ 0.172.
    fn twice_artanh(s: f64) -> f64 {
        let square = s * s;
        let series = (1..=11)
            .rev()
            .fold(0.0, |sum, n| square * (sum + 1.0 / f64::from(2 * n + 1)));
        2.0 * (s + s * series)
    }
    if w <= 0.25 {
        return twice_artanh(w / (2.0 - w)); // keeps every digit of a small w
    }
    let rest = 1.0 - w;
    if rest <= 0.0 {
        return f64::INFINITY;
    }
    // rest = mantissa·2^exponent with mantissa in [√½, √2); rest ≥ 2⁻⁵³, so it is never subnormal.
    let (mut exponent, bits) = ((rest.to_bits() >> 52) as i64 - 1023, rest.to_bits());
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    -(exponent as f64) * std::f64::consts::LN_2 - twice_artanh((mantissa - 1.0) / (mantissa + 1.0))
}

#[cfg(test)]
mod tests {
    use super::neg_ln_one_minus;

    #[test]
    fn ln_is_close_everywhere_and_not_below_its_bound() {
        let edges = [
            0.25,
            0.25_f64.next_up(),
            0.5,
            1.0_f64.next_down(),
            1.0 - 0.5_f64.sqrt(),
        ];
        let small = (1..=64)
            .map(|power| 0.5_f64.powi(power) * 1.37)
            .take_while(|&w| w < 1.0);
        let grid = (1..100_000).map(|step| f64::from(step) / 100_000.0);
        for w in edges.into_iter().chain(small).chain(grid) {
            let (got, wanted) = (neg_ln_one_minus(w), -(-w).ln_1p());
            assert!(
                (got - wanted).abs() <= 1e-15 * wanted,
                "{w}: got {got}, wanted {wanted}"
            );
            assert!(got >= w * (1.0 - 1e-15), "{w}");
        }
        assert_eq!(neg_ln_one_minus(1.0), f64::INFINITY);
    }
}
