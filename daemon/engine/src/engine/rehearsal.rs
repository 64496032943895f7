//! Before the first request: steps whose shapes every request will have.

use std::time::{Duration, Instant};

use tandem_model::model::{ModelError, Rehearsal};

use super::Engine;

/// Most rows of a step: as many as trees have where rows are cheap.
const STEP_ROWS: usize = 17;

impl Engine {
    /// Lets the devices prepare what steps of the usual sizes need, for `limit` at most, and learns what these cost. A device
    /// that records a step before it can start it in one piece takes some milliseconds at the first ones of each size, and
    /// a short answer would be over before they are paid for. Does nothing on the CPU, and while requests run.
    ///
    /// # Errors
    /// Where a device fails; short of memory, for one. The engine is as it was.
    pub fn rehearse(
        &mut self,
        clock: &dyn Fn() -> Instant,
        limit: Duration,
    ) -> Result<(), ModelError> {
        if !self.running.is_empty() {
            return Ok(());
        }
        let rehearsal = Rehearsal {
            clock,
            ends: clock() + limit,
            context_length: self.context_length,
            max_rows: self.options.max_step_rows,
        };
        // Drafters first: their forwards are the shorter ones.
        for drafter in &mut self.drafters {
            drafter.rehearse(&rehearsal)?;
        }
        let controller = &mut self.controller;
        rehearsal.run(&mut *self.target, STEP_ROWS, |rows, context, took| {
            controller.rehearsed(rows, context, took.as_secs_f64());
        })
    }
}
