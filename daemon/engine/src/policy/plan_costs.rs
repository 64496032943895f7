//! The costs that one plan reckons with.

use super::acceptance::DEPTHS;
use super::curve::ROWS;
use super::{Batch, CostModel, DraftKind};

/// Rows of a draft round that are told apart.
const ROUND_ROWS: usize = 32;

/// Expected seconds at the contexts of one step.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Of the step, by drafted rows.
    steps: [f64; ROWS + 1],
    rounds: [[f64; ROUND_ROWS + 1]; DraftKind::COUNT],
    most_rows: usize,
    known_rows: usize,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            steps: [0.0; ROWS + 1],
            rounds: [[0.0; ROUND_ROWS + 1]; DraftKind::COUNT],
            most_rows: 0,
            known_rows: 0,
        }
    }
}

impl Costs {
    /// Reads the costs of a step whose plain decoding takes `plain` seconds. Prompt chunks in it count as rows that are
    /// there anyway: how long they take has no bearing on what drafts are worth.
    pub(super) fn read(&mut self, model: &CostModel, batch: Batch, plain: f64) {
        let positions = batch.positions;
        let drafted = |most: usize| most.saturating_sub(batch.rows).min(ROWS);
        self.most_rows = drafted(batch.max_rows);
        let known = match batch.prompt {
            true => batch.max_rows,
            false => model.most_rows(positions).max(batch.rows + 1),
        };
        self.known_rows = drafted(known.min(batch.max_rows));
        let base = model.step(batch.rows, positions);
        for (rows, seconds) in self.steps.iter_mut().enumerate() {
            *seconds = plain + model.step(batch.rows + rows, positions) - base;
        }
        for kind in DraftKind::ALL {
            for (rows, seconds) in self.rounds[kind.index()].iter_mut().enumerate() {
                *seconds = model.round(kind, rows, positions);
            }
        }
    }

    /// Of the step with so many drafted rows.
    pub(super) fn step(&self, rows: usize) -> f64 {
        self.steps[rows.min(ROWS)]
    }

    /// Of a drafter's forward.
    pub(super) fn round(&self, kind: DraftKind, rows: usize) -> f64 {
        self.rounds[kind.index()][rows.min(ROUND_ROWS)]
    }

    /// Drafted rows that the step has room for.
    pub(super) fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// Of these, the rows whose cost is known well enough to go by.
    pub(super) fn known_rows(&self) -> usize {
        self.known_rows
    }
}

/// Rows of each drafter's rounds so far; the round at one depth serves all requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    rows: [[usize; DEPTHS]; DraftKind::COUNT],
}

impl Rounds {
    /// Adds a row to the round at `depth` and returns what it adds to the time.
    pub(super) fn add(&mut self, costs: &Costs, kind: DraftKind, depth: usize) -> f64 {
        let rows = &mut self.rows[kind.index()][depth.min(DEPTHS - 1)];
        *rows += 1;
        costs.round(kind, *rows) - costs.round(kind, *rows - 1)
    }

    pub(super) fn rows(&self, kind: DraftKind, depth: usize) -> usize {
        self.rows[kind.index()][depth.min(DEPTHS - 1)]
    }

    /// Rounds of a drafter and their rows in all.
    pub(super) fn total(&self, kind: DraftKind) -> (usize, usize) {
        let rows = &self.rows[kind.index()];
        (
            rows.iter().filter(|rows| **rows > 0).count(),
            rows.iter().sum(),
        )
    }
}
