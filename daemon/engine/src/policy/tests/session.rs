//! One request, step by step, with what drafters ask and what becomes of it in a test's hands.

use super::machines::chunked;
use super::sim::Dice;
use crate::policy::{
    Batch, Candidate, Controller, DraftKind, DraftState, DraftTime, Evidence, NodeOutcome, Outcome,
    Policy, Protection, StepPlan, StepTimes,
};

/// One request of a pair, step by step.
pub(super) struct Session {
    pub(super) controller: Controller,
    pub(super) plan: StepPlan,
    pub(super) state: DraftState,
    kinds: [bool; 3],
    pub(super) behind: usize,
    pub(super) remaining: usize,
    pub(super) width: Option<usize>,
    /// Seconds of a step of so many rows.
    pub(super) step: fn(usize) -> f64,
}

pub(super) fn session(policy: Policy, kinds: [bool; 3]) -> Session {
    Session {
        controller: Controller::new(policy, Protection::default()),
        plan: StepPlan::default(),
        state: DraftState::default(),
        kinds,
        behind: 0,
        remaining: 10_000,
        width: None,
        step: chunked,
    }
}

impl Session {
    pub(super) fn plan(&mut self) {
        let batch = Batch {
            rows: 1,
            running: 1,
            max_rows: 64,
            positions: 100,
            prompt: false,
        };
        let candidate = Candidate {
            state: &self.state,
            kinds: self.kinds,
            remaining: self.remaining,
            behind: [self.behind, 0, 0],
            policy: None,
            width: self.width,
        };
        self.controller
            .plan(&mut self.plan, batch, [candidate].into_iter());
    }

    pub(super) fn record(&mut self, nodes: &[NodeOutcome], drafts: &[DraftTime]) {
        let rows = 1 + self.plan.drafted();
        let times = StepTimes {
            rows,
            drafts,
            verify: (self.step)(rows),
            ..StepTimes::default()
        };
        self.controller.record_step(&mut self.plan, &times);
        let accepted = nodes.iter().filter(|node| node.accepted).count();
        let outcome = Outcome {
            committed: accepted + 1,
            accepted,
            nodes,
        };
        self.controller
            .record(&self.plan, 0, &mut self.state, &outcome);
    }

    /// A step with a match of `length` tokens whose continuation is right with probability `right`.
    pub(super) fn lookup(&mut self, length: usize, right: f64, dice: &mut Dice) -> usize {
        self.plan();
        let offered = self.plan.offer_guess(0, length, 16);
        let mut nodes = Vec::new();
        for depth in 0..offered {
            let accepted = dice.roll() < right;
            nodes.push(NodeOutcome {
                kind: DraftKind::Lookup,
                depth,
                sibling: 0,
                evidence: Evidence::Match(length + depth),
                accepted,
            });
            if !accepted {
                break;
            }
        }
        self.record(&nodes, &[]);
        offered
    }
}
