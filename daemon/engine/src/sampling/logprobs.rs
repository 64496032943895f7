//! How likely the target found what was chosen.

use tandem_model::TokenId;

/// Most likeliest tokens that can be asked for beside the chosen one.
pub const MAX_TOP_LOGPROBS: usize = 20;

/// Log-probabilities at one position: those of the target's own distribution, before temperature, penalties and whatever
/// else the request asks for, whoever drafted the token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenLogprobs {
    /// Natural logarithm of the chosen token's probability.
    pub logprob: f32,
    /// The likeliest tokens with theirs, the likeliest first; of equal ones the lower id.
    pub top: Vec<(TokenId, f32)>,
}

impl TokenLogprobs {
    /// Reads them off a row of logits, `[V]`, with the `top` likeliest tokens. NaN counts as negative infinity.
    #[must_use]
    pub fn of(logits: &[f32], token: TokenId, top: usize) -> Self {
        let logit = |logit: &f32| match logit.is_nan() {
            true => f32::NEG_INFINITY,
            false => *logit,
        };
        let peak = logits.iter().map(logit).fold(f32::NEG_INFINITY, f32::max);
        if !peak.is_finite() {
            let logprob = f32::NEG_INFINITY;
            return Self {
                logprob,
                top: Vec::new(),
            };
        }
        let weights = logits.iter().map(|x| f64::from(logit(x) - peak).exp());
        let total = f64::from(peak) + weights.sum::<f64>().ln();
        let logprob = |x: f32| (f64::from(x) - total) as f32;
        let chosen = logits.get(token as usize).map_or(f32::NEG_INFINITY, logit);
        let mut leaders: Vec<(TokenId, f32)> = Vec::with_capacity(top + 1);
        for (id, x) in (0..).zip(logits.iter().map(logit)) {
            if leaders.len() == top && leaders.last().is_none_or(|(_, last)| x <= *last) {
                continue;
            }
            let place = leaders.partition_point(|(_, other)| *other >= x);
            leaders.insert(place, (id, x));
            leaders.truncate(top);
        }
        Self {
            logprob: logprob(chosen),
            top: leaders
                .into_iter()
                .map(|(id, x)| (id, logprob(x)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_the_likeliest_come_first() {
        let logits = [0.5, -1.0, 3.0, f32::NAN, 3.0, -40.0];
        let all = TokenLogprobs::of(&logits, 0, 6);
        let ids: Vec<_> = all.top.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [2, 4, 0, 1, 5, 3]);
        let sum: f32 = all.top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        assert_eq!(all.logprob, all.top[2].1);
        assert_eq!(all.top[5].1, f32::NEG_INFINITY);
    }

    #[test]
    fn none_and_some_of_the_likeliest() {
        let logits = [1.0, 2.0, 3.0];
        assert_eq!(TokenLogprobs::of(&logits, 1, 0).top, []);
        assert_eq!(TokenLogprobs::of(&logits, 1, 1).top[0].0, 2);
        let far = TokenLogprobs::of(&logits, 99, 2);
        assert_eq!((far.logprob, far.top.len()), (f32::NEG_INFINITY, 2));
    }

    #[test]
    fn a_row_without_a_finite_logit_says_so() {
        let none = TokenLogprobs::of(&[f32::NAN, f32::NEG_INFINITY], 0, 2);
        assert_eq!((none.logprob, none.top.len()), (f32::NEG_INFINITY, 0));
    }
}
