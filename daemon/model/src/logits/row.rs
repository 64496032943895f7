//! A row of logits, of which what leads may be known before the rest is there.

use std::fmt::Debug;

use super::Leading;
use crate::{TokenId, math};

/// Where rows of logits are fetched from when more is asked of them than what leads.
pub trait Rest: Debug {
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
    #[must_use]
    pub fn told(leading: &'a Leading, rest: &'a dyn Rest, row: usize) -> Self {
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
    #[must_use]
    pub fn leading(self) -> Leading {
        match self.0 {
            Source::Values(values) => Leading::of(values),
            Source::Told { leading, .. } => *leading,
        }
    }

    /// Whether the row says anything, where `chosen` was chosen by it: whether its largest logit is a finite number. Looks at one
    /// number, because whatever is chosen of a row that has none has no finite logit either.
    #[must_use]
    pub fn decides(self, chosen: TokenId) -> bool {
        match self.0 {
            Source::Values(values) => {
                let logit = values.get(chosen as usize);
                logit.is_some_and(|logit| logit.is_finite())
            }
            Source::Told { leading, .. } => leading.probs[0] > 0.0,
        }
    }

    /// The row without the tokens from `tokens` on, of which all is read.
    #[must_use]
    pub fn without_from(self, tokens: usize) -> Self {
        let values = self.values();
        Self(Source::Values(&values[..tokens.min(values.len())]))
    }

    /// The token of the largest logit, the lowest on ties and NaN aside; 0 where none is above negative infinity.
    #[must_use]
    pub fn likeliest(self) -> TokenId {
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
