//! What the policy hears of a step.

use std::time::Instant;

use super::Engine;
use super::step::Step;
use crate::policy::{Outcome, StepTimes};

impl Engine {
    /// Books what the step took and what became of its drafts. The instants end drafting, the target's forward, the choice
    /// of tokens, and the roll-back of what was rejected.
    pub(super) fn learn(
        &mut self,
        step: &mut Step,
        [drafted, verified, accepted, ended]: [Instant; 4],
        cold: bool,
    ) {
        let Step {
            shares,
            plan,
            draft_times,
            nodes,
            rows,
            ..
        } = step;
        // Requests that only read their prompts lose nothing to anybody's draft but the time that the allowance counts.
        let seconds = (ended - drafted).as_secs_f64();
        for share in shares.iter().filter(|share| share.seat.is_none()) {
            self.running[share.index].draft_state.elapse(seconds);
        }
        self.last_step = None;
        if shares.iter().all(|share| share.seat.is_none()) {
            return;
        }
        let times = StepTimes {
            rows: rows.len(),
            drafts: draft_times,
            verify: (verified - drafted).as_secs_f64(),
            accept: (accepted - verified).as_secs_f64(),
            cache_update: (ended - accepted).as_secs_f64(),
            cold,
        };
        self.controller.record_step(plan, &times);
        let mut committed = 0;
        for share in shares {
            let (Some(seat), Some(verdict)) = (share.seat, &share.verdict) else {
                continue;
            };
            share
                .proposal
                .outcomes(&verdict.accepted, verdict.next, nodes);
            let outcome = Outcome {
                committed: share.committed,
                accepted: verdict.accepted.len(),
                nodes,
            };
            let state = &mut self.running[share.index].draft_state;
            self.controller.record(plan, seat, state, &outcome);
            committed += share.committed;
        }
        self.last_step = Some(plan.report(&times, committed));
    }
}
