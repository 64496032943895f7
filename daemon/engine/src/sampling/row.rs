//! A row of logits, of which what leads may be known before the rest is there.

use std::fmt::Debug;

use super::{Leading, math};
use crate::TokenId;

/// Where rows of logits are fetched from when more is asked of them than what leads.
pub(crate) trait Rest: Debug {
    /// All logits of a row; none where they could not be had, which whoever asked for them is told apart from this.
    fn values(&self, row: usize) -> &[f32];
}

/// A row of logits, `[V]`. Devices tell what leads in it and keep the rest until somebody reads it: greedy choices and drafts
/// without transforms never do.
#[derive(Clone, Copy, Debug)]
pub struct LogitsRow<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Values(&'a [f32]),
    Told {
        leading: &'a Leading,
        rest: &'a dyn Rest,
        row: usize,
    },
}

impl<'a> LogitsRow<'a> {
    /// A row whose leading tokens were told.
    pub(crate) fn told(leading: &'a Leading, rest: &'a dyn Rest, row: usize) -> Self {
        Self(Source::Told { leading, rest, row })
    }

    /// All logits.
    #[must_use]
    pub fn values(self) -> &'a [f32] {
        match self.0 {
            Source::Values(values) => values,
            Source::Told { rest, row, .. } => rest.values(row),
        }
    }

    /// The likeliest tokens.
    pub(crate) fn leading(self) -> Leading {
        match self.0 {
            Source::Values(values) => Leading::of(values),
            Source::Told { leading, .. } => *leading,
        }
    }

    /// Whether the row says anything, where `chosen` was chosen by it: whether its largest logit is a finite number. Looks at one
    /// number, because whatever is chosen of a row that has none has no finite logit either.
    pub(crate) fn decides(self, chosen: TokenId) -> bool {
        match self.0 {
            Source::Values(values) => {
                let logit = values.get(chosen as usize);
                logit.is_some_and(|logit| logit.is_finite())
            }
            Source::Told { leading, .. } => leading.probs[0] > 0.0,
        }
    }

    /// The row without the tokens from `tokens` on, of which all is read.
    pub(crate) fn without_from(self, tokens: usize) -> Self {
        let values = self.values();
        Self(Source::Values(&values[..tokens.min(values.len())]))
    }

    /// The token of the largest logit, the lowest on ties and NaN aside; 0 where none is above negative infinity.
    pub(crate) fn likeliest(self) -> TokenId {
        match self.0 {
            Source::Values(values) => math::argmax(values) as TokenId,
            Source::Told { leading, .. } => leading.tokens[0],
        }
    }
}

impl<'a> From<&'a [f32]> for LogitsRow<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self(Source::Values(values))
    }
}

impl<'a> From<&'a Vec<f32>> for LogitsRow<'a> {
    fn from(values: &'a Vec<f32>) -> Self {
        Self(Source::Values(values))
    }
}

impl<'a, const N: usize> From<&'a [f32; N]> for LogitsRow<'a> {
    fn from(values: &'a [f32; N]) -> Self {
        Self(Source::Values(values))
    }
}

/// A row that is kept.
#[derive(Clone, Debug)]
pub(crate) struct KeptRow {
    leading: Leading,
    /// Empty where whoever kept it will not read them.
    values: Vec<f32>,
}

impl KeptRow {
    /// Keeps what leads, and all `values` if they will be read.
    pub(crate) fn of(row: LogitsRow<'_>, values: bool) -> Self {
        Self {
            leading: row.leading(),
            values: if values {
                row.values().to_vec()
            } else {
                Vec::new()
            },
        }
    }

    pub(crate) fn row(&self) -> LogitsRow<'_> {
        LogitsRow::told(&self.leading, &self.values, 0)
    }
}

impl Rest for Vec<f32> {
    fn values(&self, _row: usize) -> &[f32] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::{Sampler, SamplingParams};

    /// Logits that nobody may read.
    #[derive(Debug)]
    struct Away;

    impl Rest for Away {
        fn values(&self, row: usize) -> &[f32] {
            panic!("row {row} was read")
        }
    }

    #[test]
    fn a_greedy_choice_reads_nothing_but_what_leads() {
        let mut values = vec![0.25_f32; 300];
        (values[17], values[200]) = (3.0, 3.0);
        let leading = Leading::of(&values);
        let row = LogitsRow::told(&leading, &Away, 5);
        let sampler = Sampler::new(SamplingParams::greedy(), &[1, 2], 0);
        assert!(!sampler.reads_values());
        assert_eq!(sampler.distribution(row, &[3]).certain(), Some(17));
        assert_eq!(sampler.distribution(&values, &[3]).certain(), Some(17));
        assert_eq!(
            row.leading().probs,
            LogitsRow::from(&values).leading().probs
        );
    }

    #[test]
    fn a_row_without_a_finite_maximum_decides_nothing() {
        let choose = |values: &[f32], temperature: f32| {
            let params = SamplingParams {
                temperature,
                ..SamplingParams::default()
            };
            let mut sampler = Sampler::new(params, &[], 1);
            let distribution = sampler.distribution(values, &[]);
            sampler.draw(&distribution, 0)
        };
        let [nan, high, low] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        for (values, expected) in [
            ([nan; 6], false),
            ([low; 6], false),
            ([nan, low, nan, low, nan, low], false),
            ([1.0, 2.0, high, 3.0, nan, low], false),
            ([high; 6], false),
            ([low, low, nan, -3.0, low, nan], true),
            ([1.0, 2.0, -1e38, 3e38, 0.0, 1.0], true),
            ([0.0; 6], true),
        ] {
            for temperature in [0.0, 0.01, 1.0, 100.0] {
                let chosen = choose(&values, temperature);
                let row = LogitsRow::from(&values);
                assert_eq!(row.decides(chosen), expected, "{values:?}: {chosen}");
                let leading = Leading::of(&values);
                let told = LogitsRow::told(&leading, &Away, 0);
                assert_eq!(told.decides(chosen), expected, "{values:?} as told");
            }
        }
    }

    #[test]
    fn a_kept_row_is_the_row() {
        let values: Vec<f32> = (0..200).map(|at| (at * 37 % 101) as f32 / 9.0).collect();
        let params = SamplingParams {
            temperature: 0.8,
            ..SamplingParams::default()
        };
        let sampler = Sampler::new(params, &[], 1);
        assert!(sampler.reads_values());
        let kept = KeptRow::of((&values).into(), true);
        assert_eq!(
            sampler.distribution(kept.row(), &[]),
            sampler.distribution(&values, &[])
        );
        assert_eq!(kept.row().likeliest() as usize, math::argmax(&values));
    }
}
