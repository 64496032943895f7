//! Drafting ahead: while the target verifies a draft, the model goes on from the outcome it expects, so that the next draft
//! finds its first forwards done.
//!
//! Only logits are computed ahead, along the likeliest path; nothing is drawn and nothing offered. The next draft is made of
//! the same logits by the same plan as ever, so what is computed ahead can change when a draft is ready, never what it is
//! distributed as.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;
use tandem_model::model::{LanguageModel, ModelError, Row};

use super::fed::{Fed, Foreseen};
use crate::SequenceId;
use crate::draft::distributions::Distributions;
use crate::draft::{Expected, Reach};
use crate::sampling::{Distribution, KeptRow};

/// A path that is followed beyond the draft.
struct Walk<'a> {
    expected: &'a Expected<'a>,
    fed: &'a mut Fed,
    /// Drafted and foreseen tokens.
    path: Vec<TokenId>,
    /// Tokens at the end of the path that have yet to be fed.
    pending: usize,
    /// The row of the token before these.
    last: Option<usize>,
    /// Tokens of the path that belong to the draft.
    drafted: usize,
    /// What the model can be fed.
    reach: Reach,
}

impl<'a> Walk<'a> {
    fn begin(expected: &'a Expected<'a>, fed: &'a mut Fed, reach: Reach) -> Option<Self> {
        // A cache that is behind would have to catch up first, and a draft that is all fed ends where its model saw no use
        // in going on.
        if fed.tokens.len() != expected.tokens.len() {
            return None;
        }
        let path = expected.proposal.leading();
        let rows = fed.descend(&path);
        let walk = Self {
            pending: path.len() - rows.len(),
            last: rows.last().copied(),
            drafted: path.len(),
            expected,
            fed,
            path,
            reach,
        };
        walk.goes_on().then_some(walk)
    }

    /// As many tokens ahead as the draft had, and the one that the target chooses.
    fn goes_on(&self) -> bool {
        let most = (2 * self.drafted + 1).min(self.expected.remaining);
        // What others drafted can be beyond what this model knows.
        let largest = self.path.iter().copied().max().unwrap_or(0);
        let length = self.expected.tokens.len() + self.path.len();
        self.pending > 0 && self.path.len() <= most && self.reach.covers(length, largest)
    }

    /// Appends the rows to be fed.
    fn rows(&mut self, rows: &mut Vec<Row>) {
        let first = self.path.len() - self.pending;
        for &token in &self.path[first..] {
            rows.push(Row {
                slot: self.fed.slot,
                token,
                parent: self.last,
            });
            self.last = Some(self.fed.tree.len());
            let parent = rows.last().and_then(|row| row.parent);
            self.fed.tree.push((token, parent));
        }
    }

    /// Takes the logits after the last row and says what comes next.
    fn take(&mut self, logits: LogitsRow<'_>, scratch: &mut Distribution) {
        let sampler = self.expected.sampler;
        if let (Some(row), Some(&token)) = (self.last, self.path[self.drafted..].last()) {
            let logits = KeptRow::of(logits, sampler.reads_values());
            self.fed.ahead.push(Foreseen { token, row, logits });
        }
        let position = self.expected.tokens.len() + self.path.len();
        sampler.distribution_into(logits, &self.path, scratch);
        self.path.push(sampler.foresee(scratch, position));
        self.pending = 1;
    }
}

/// Follows the likeliest path beyond each draft until `stop` is set, one forward at least.
pub(super) fn run(
    model: &mut dyn LanguageModel,
    sequences: &mut HashMap<SequenceId, Fed>,
    distributions: &Distributions,
    reach: Reach,
    expected: &[Expected<'_>],
    stop: &AtomicBool,
) -> Result<(), ModelError> {
    let mut walks: Vec<Walk<'_>> = sequences
        .iter_mut()
        .filter_map(|(id, fed)| {
            let expected = expected.iter().find(|expected| expected.id == *id)?;
            Walk::begin(expected, fed, reach)
        })
        .collect();
    let (mut rows, mut want) = (Vec::new(), Vec::new());
    let mut scratch = Distribution::one_hot(0);
    while !walks.is_empty() {
        rows.clear();
        want.clear();
        for walk in &mut walks {
            walk.rows(&mut rows);
            want.push(rows.len() - 1);
        }
        let logits = model.grow(&rows, &want)?;
        for (index, walk) in walks.iter_mut().enumerate() {
            walk.take(distributions.seen(logits.at(index)), &mut scratch);
        }
        logits.arrived()?;
        walks.retain(Walk::goes_on);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}
