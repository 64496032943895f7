//! Steps that are run at load, so that no request waits for what a device prepares when it first meets their shape.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use super::{LanguageModel, ModelError, Row};
use crate::TokenId;

/// Cached positions before the steps: attention is started anew in other shapes as they double.
const CONTEXTS: [usize; 4] = [64, 192, 384, 768];
/// Runs of a shape after which it is taken for one that is never ready.
const MOST_RUNS: usize = 4;

/// How long a rehearsal may take, and how large its steps may be.
pub struct Rehearsal<'a> {
    /// Tells how long each step took.
    pub clock: &'a dyn Fn() -> Instant,
    /// When it is over, whatever is left.
    pub ends: Instant,
    /// Positions that a sequence may have.
    pub context_length: usize,
    /// Most rows of a forward.
    pub max_rows: usize,
}

impl std::fmt::Debug for Rehearsal<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rehearsal")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl Rehearsal<'_> {
    /// Runs forwards of 1 to `rows` rows after contexts of several lengths until the device has nothing left to prepare for
    /// them. `ready` is told the rows, the context and the time of each that was. Does nothing on a device that prepares
    /// nothing.
    ///
    /// # Errors
    /// As [`LanguageModel::forward`].
    pub fn run(
        &self,
        model: &mut dyn LanguageModel,
        rows: usize,
        mut ready: impl FnMut(usize, usize, Duration),
    ) -> Result<(), ModelError> {
        if model.preparations() == 0 {
            return Ok(());
        }
        let slot = model.open()?;
        let vocabulary = model.config().vocabulary;
        let token = |at: usize| (37 * at % vocabulary) as TokenId;
        let all: Vec<Row> = Row::chain(slot, &(0..rows).map(token).collect::<Vec<_>>()).collect();
        let want: Vec<usize> = (0..rows).collect();
        let rows = rows.min(self.max_rows);
        let mut result = Ok(());
        model.rehearsing(true);
        'all: for context in CONTEXTS {
            if context + rows > self.context_length {
                break;
            }
            let missing: Vec<TokenId> = (model.cached(slot)..context).map(token).collect();
            for piece in missing.chunks(self.max_rows) {
                let piece: Vec<Row> = Row::chain(slot, piece).collect();
                result = result.and(model.forward(&piece, &[]).map(|_| ()));
            }
            for rows in 1..=rows {
                for _ in 0..MOST_RUNS {
                    let (prepared, started) = (model.preparations(), (self.clock)());
                    if result.is_err() || started >= self.ends {
                        break 'all;
                    }
                    result = model.forward(&all[..rows], &want[..rows]).map(|_| ());
                    let took = (self.clock)() - started;
                    model.truncate(slot, context);
                    if result.is_ok() && model.preparations() == prepared {
                        ready(rows, context, took);
                        break;
                    }
                }
            }
        }
        model.rehearsing(false);
        model.close(slot);
        result
    }
}
