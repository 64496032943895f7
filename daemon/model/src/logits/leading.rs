//! What a distribution looks like before anything is drawn from it: its likeliest tokens and how likely they are.

use crate::{TokenId, math, wide};

/// Tokens told apart.
pub const LEADING: usize = 4;

/// The likeliest tokens of a row of logits, with their probabilities at temperature 1 and without any transform.
///
/// A property of the row alone, whatever the request's parameters: this is what a policy may go by before the draw, and the
/// same confidence means the same to all requests.
#[derive(Clone, Copy, Debug)]
pub struct Leading {
    /// The likeliest first, of equal ones the lower.
    pub tokens: [TokenId; LEADING],
    /// What each is worth, in 0..=1.
    pub probs: [f64; LEADING],
}

impl Leading {
    /// Looks at a row, at least [`LEADING`] long. NaN counts as negative infinity.
    #[must_use]
    pub fn of(logits: &[f32]) -> Self {
        let top = highest(logits);
        let peak = top[0].0;
        let sum = match peak.is_finite() {
            true => math::sum_exp(logits, peak),
            false => 1.0,
        };
        Self::told(top, sum)
    }

    /// The highest logits with their tokens, the highest first and of equal ones the lower token, and the sum of
    /// e^(logit - highest) over the row.
    #[must_use]
    pub fn told(top: [(f32, TokenId); LEADING], sum: f64) -> Self {
        let peak = top[0].0;
        // Infinite logits share what there is.
        let sum = if peak.is_finite() { sum } else { 1.0 };
        let prob = |(logit, _): (f32, TokenId)| {
            if logit.is_finite() {
                f64::from(math::exp_nonpositive(logit - peak)) / sum
            } else {
                0.0
            }
        };
        Self {
            tokens: top.map(|(_, token)| token),
            probs: top.map(prob),
        }
    }
}

wide! {
    /// The highest logits of a row.
    fn highest[](logits: &[f32]) -> [(f32, TokenId); LEADING] = highest_inline
}

#[inline(always)]
fn highest_inline(logits: &[f32]) -> [(f32, TokenId); LEADING] {
    let mut top = [(f32::NEG_INFINITY, 0); LEADING];
    for (start, block) in (0..).step_by(64).zip(logits.chunks(64)) {
        // Few blocks have anything to add, and a maximum vectorizes.
        if math::max_inline(block) <= top[LEADING - 1].0 {
            continue;
        }
        for (index, &logit) in (start..).zip(block) {
            insert(&mut top, logit, index);
        }
    }
    top
}

/// Puts a logit in its place among the highest, behind equal ones.
fn insert(top: &mut [(f32, TokenId); LEADING], logit: f32, token: TokenId) {
    if logit.is_nan() || logit <= top[LEADING - 1].0 {
        return;
    }
    let mut place = LEADING - 1;
    while place > 0 && logit > top[place - 1].0 {
        top[place] = top[place - 1];
        place -= 1;
    }
    top[place] = (logit, token);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_come_first_and_equal_ones_by_number() {
        let mut logits = vec![0.0f32; 1000];
        (logits[700], logits[3], logits[999], logits[500]) = (2.0, 3.0, 2.0, f32::NAN);
        let leading = Leading::of(&logits);
        assert_eq!(leading.tokens, [3, 700, 999, 0]);
        let sum = 3f64.exp() + 2.0 * 2f64.exp() + 996.0;
        assert!((leading.probs[0] - 3f64.exp() / sum).abs() < 1e-6);
        assert!((leading.probs[1] - 2f64.exp() / sum).abs() < 1e-6);
    }

    #[test]
    fn a_row_without_a_number_is_certain_of_nothing() {
        assert_eq!(Leading::of(&[f32::NAN; 8]).probs, [0.0; LEADING]);
    }
}
