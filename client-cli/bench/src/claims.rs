//! What two write-ups on speculative decoding claim, what follows from their own numbers, and the arithmetic of breaking
//! even.

/// Acceptance under which the mobile write-up says that speculation loses.
pub const CLAIMED_BREAK_EVEN: f64 = 0.52;
/// Draft length, seconds of a step and plain tokens per second that it says so of: an A18 Pro, a 3 B target, a 1 B draft.
pub const MOBILE_DRAFT_LENGTH: usize = 4;
/// Seconds of its drafting (18 ms) and verification (32 ms) together.
pub const MOBILE_STEP_SECONDS: f64 = 0.050;
/// Its plain tokens per second.
pub const MOBILE_PLAIN_RATE: f64 = 28.6;
/// Operations of a step that the other write-up reports, with their milliseconds: an M4 Max, a 7 B target.
pub const STEP_MILLISECONDS: [(&str, f64); 4] = [
    ("draft forward", 0.8),
    ("verification", 4.2),
    ("acceptance", 0.3),
    ("cache update", 1.3),
];

/// Expected tokens of a step that drafts a chain of `length`, each accepted with probability `acceptance` after the one
/// before; the recovered or bonus token is counted.
#[must_use]
pub fn expected_tokens(acceptance: f64, length: usize) -> f64 {
    (0..=length)
        .map(|power| acceptance.powi(power as i32))
        .sum()
}

/// Returns the acceptance at which a chain of `length`, whose step takes as long as `cost` plain steps, is as fast as
/// plain decoding: 0 where it never loses, `None` where it always does.
#[must_use]
pub fn break_even(length: usize, cost: f64) -> Option<f64> {
    if !cost.is_finite() || expected_tokens(1.0, length) < cost {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    // Expected tokens rise with acceptance, so halving finds the only crossing, to 2^-50.
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if expected_tokens(middle, length) < cost {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(high.max(0.0)).map(|found| if found < 1e-12 { 0.0 } else { found })
}

/// Returns the break-even acceptance that the mobile write-up's own numbers imply.
///
/// # Panics
/// Never: a test reckons it.
#[must_use]
pub fn implied_break_even() -> f64 {
    break_even(MOBILE_DRAFT_LENGTH, MOBILE_STEP_SECONDS * MOBILE_PLAIN_RATE)
        .expect("its step takes 1.43 plain steps and can commit 5 tokens")
}

/// Returns the speed-up that the mobile write-up's own numbers imply at this acceptance.
#[must_use]
pub fn implied_speedup(acceptance: f64) -> f64 {
    expected_tokens(acceptance, MOBILE_DRAFT_LENGTH) / (MOBILE_STEP_SECONDS * MOBILE_PLAIN_RATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mobile_write_up_breaks_even_well_below_its_claim() {
        assert!(
            (implied_break_even() - 0.302).abs() < 0.001,
            "{}",
            implied_break_even()
        );
        // At 0.40, where it reports 20 tok/s and a loss of 18 %, its numbers give 33 tok/s.
        assert!((implied_speedup(0.40) * MOBILE_PLAIN_RATE - 33.0).abs() < 0.1);
        assert!((implied_speedup(CLAIMED_BREAK_EVEN) - 1.4).abs() < 0.01);
    }

    #[test]
    fn limits() {
        assert_eq!(expected_tokens(0.0, 7), 1.0);
        assert_eq!(expected_tokens(1.0, 7), 8.0);
        assert_eq!(break_even(4, 1.0), Some(0.0));
        assert_eq!(break_even(4, 0.5), Some(0.0));
        assert_eq!(break_even(4, 5.1), None);
        assert_eq!(break_even(0, 1.2), None);
        assert_eq!(break_even(3, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn at_break_even_tokens_are_worth_their_cost(length in 1_usize..17, share in 0.01..0.99_f64) {
            let cost = 1.0 + share * length as f64;
            let acceptance = break_even(length, cost).unwrap();
            prop_assert!((expected_tokens(acceptance, length) - cost).abs() < 1e-6);
        }
    }
}
