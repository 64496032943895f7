//! Looked-up tokens, catching up, parking and the other policies: one request, step by step.

use super::sim::{Dice, chunked};
use crate::policy::{
    Batch, Candidate, CatchUp, Controller, CostModel, DraftKind, DraftState, DraftTime, Evidence,
    NodeOutcome, Outcome, Policy, StepPlan, StepTimes,
};

struct Session {
    controller: Controller,
    plan: StepPlan,
    state: DraftState,
    kinds: [bool; 3],
    behind: usize,
    remaining: usize,
    width: Option<usize>,
}

fn session(policy: Policy, kinds: [bool; 3]) -> Session {
    Session {
        controller: Controller::new(policy, crate::policy::Protection::default()),
        plan: StepPlan::default(),
        state: DraftState::default(),
        kinds,
        behind: 0,
        remaining: 10_000,
        width: None,
    }
}

impl Session {
    fn plan(&mut self) {
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

    fn record(&mut self, nodes: &[NodeOutcome], drafts: &[DraftTime]) {
        let rows = 1 + self.plan.drafted();
        let times = StepTimes {
            rows,
            drafts,
            verify: chunked(rows),
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
    fn lookup(&mut self, length: usize, right: f64, dice: &mut Dice) -> usize {
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

#[test]
fn long_matches_are_verified_at_length_and_false_ones_hardly() {
    let mut dice = Dice(1);
    let mut copying = session(Policy::Goodput, [false, false, true]);
    let lengths: Vec<usize> = (0..200)
        .map(|_| copying.lookup(20, 0.97, &mut dice))
        .collect();
    let long = lengths.iter().filter(|length| **length >= 7).count();
    assert!(long > 180, "{lengths:?}");
    assert!(copying.state.stats().measured_speedup() > 3.0);

    let mut writing = session(Policy::Goodput, [false, false, true]);
    let lengths: Vec<usize> = (0..600)
        .map(|_| writing.lookup(3, 0.02, &mut dice))
        .collect();
    let drafted = lengths[100..].iter().filter(|length| **length > 0).count();
    assert!((1..30).contains(&drafted), "{drafted}");
    assert!(writing.state.stats().measured_speedup() > 0.98);
}

#[test]
fn a_guess_that_is_likely_right_leaves_the_model_nothing_to_do() {
    let mut dice = Dice(2);
    let mut both = session(Policy::Goodput, [true, false, true]);
    for _ in 0..100 {
        both.lookup(30, 1.0, &mut dice);
    }
    both.plan();
    assert!(both.plan.offer_guess(0, 30, 7) == 7);
    assert!(!both.plan.round(0, DraftKind::Model, 0, 1.0));
    both.plan();
    assert!(
        both.plan.round(0, DraftKind::Model, 0, 1.0),
        "without a match the model drafts"
    );
}

#[test]
fn a_second_guess_is_worth_what_the_first_leaves() {
    let mut dice = Dice(5);
    let mut sure = session(Policy::Goodput, [false, false, true]);
    (0..100).for_each(|_| {
        sure.lookup(30, 1.0, &mut dice);
    });
    sure.plan();
    assert_eq!(sure.plan.offer_guess(0, 30, 4), 4);
    assert_eq!(sure.plan.offer_guess(0, 30, 4), 0);

    let mut torn = session(Policy::Goodput, [false, false, true]);
    (0..200).for_each(|_| {
        torn.lookup(30, 0.6, &mut dice);
    });
    torn.plan();
    let (first, alone) = (torn.plan.offer_guess(0, 30, 4), torn.plan.expected_tokens());
    let (second, both) = (torn.plan.offer_guess(0, 30, 4), torn.plan.expected_tokens());
    assert!(
        first > 0 && second > 0,
        "{first} and {second}: rows are cheap"
    );
    assert!(both - alone < alone - 1.0, "{alone} and {both} tokens");
}

#[test]
fn where_chains_are_asked_for_there_is_no_second_guess() {
    for (policy, width) in [
        (Policy::Goodput, Some(1)),
        (Policy::Threshold, None),
        (Policy::Fixed(6), None),
    ] {
        let mut dice = Dice(5);
        let mut torn = session(Policy::Goodput, [false, false, true]);
        (0..200).for_each(|_| {
            torn.lookup(30, 0.8, &mut dice);
        });
        torn.controller.set_policy(policy);
        torn.width = width;
        torn.plan();
        let (first, second) = (
            torn.plan.offer_guess(0, 30, 2),
            torn.plan.offer_guess(0, 30, 2),
        );
        assert!(first > 0 && second == 0, "{policy:?}: {first} and {second}");
    }
}

#[test]
fn catching_up_must_pay_off_and_is_booked() {
    let mut late = session(Policy::Goodput, [true, false, false]);
    (0..3).for_each(|_| {
        late.plan();
        late.record(&[], &[]);
    });
    late.plan();
    assert!(late.plan.round(0, DraftKind::Model, 0, 1.0));
    // As long to read as twelve plain steps: more than may be lost.
    late.behind = 1200;
    late.plan();
    assert!(!late.plan.round(0, DraftKind::Model, 0, 1.0));
    // Two plain steps for the last two tokens.
    (late.behind, late.remaining) = (200, 2);
    late.plan();
    assert!(!late.plan.round(0, DraftKind::Model, 0, 1.0));
    late.remaining = 500;
    late.plan();
    assert!(late.plan.round(0, DraftKind::Model, 0, 1.0));
    let catch_up = DraftTime {
        kind: DraftKind::Model,
        round_seconds: 0.02,
        catch_up: CatchUp {
            requests: 1,
            tokens: 200,
            seconds: 3.0,
        },
        cold: false,
    };
    late.record(&[], &[catch_up]);
    assert!(
        (late.state.ledger().lost() - 3.02).abs() < 1e-9,
        "{:?}",
        late.state.ledger()
    );
    let costs = late.controller.costs();
    assert!((costs.catch_up(DraftKind::Model, 100, 100) - 1.5).abs() < 1e-9);
    // The device may not have been done with it when the round began: nothing is known of rounds yet.
    let usual = CostModel::default().round(DraftKind::Model, 1, 100);
    assert!((costs.round(DraftKind::Model, 1, 100) - usual).abs() < 1e-9);
}

#[test]
fn a_parked_drafter_is_tried_again_and_comes_back() {
    let mut parked = session(Policy::Goodput, [true, false, false]);
    let (mut parked_steps, mut tried_while_parked, mut back) = (0, 0, None);
    for step in 0..4000 {
        parked.plan();
        parked.behind = if parked.plan.parked(0, DraftKind::Model) {
            100
        } else {
            0
        };
        let was_parked = parked.plan.parked(0, DraftKind::Model);
        let mut nodes = Vec::new();
        if parked.plan.round(0, DraftKind::Model, 0, 1.0)
            && parked
                .plan
                .offer(0, DraftKind::Model, 0, 0, 1.0, None)
                .is_some()
        {
            tried_while_parked += usize::from(parked_steps > 0 && parked.plan.probes(0));
            if parked_steps > 0 && !parked.plan.probes(0) {
                back.get_or_insert(step);
            }
            nodes.push(NodeOutcome {
                kind: DraftKind::Model,
                depth: 0,
                sibling: 0,
                evidence: Evidence::None,
                accepted: step > 1000,
            });
        }
        parked_steps += usize::from(was_parked);
        parked.record(&nodes, &[]);
    }
    assert!(
        parked_steps > 500 && tried_while_parked > 0,
        "{parked_steps} {tried_while_parked}"
    );
    assert!((1001..2500).contains(&back.unwrap_or(0)), "{back:?}");
    assert!(!parked.plan.parked(0, DraftKind::Model));
}

#[test]
fn fixed_and_threshold_lengths_are_what_they_say() {
    let length = |session: &mut Session| {
        session.plan();
        let mut length = 0;
        while session.plan.round(0, DraftKind::Model, length, 1.0)
            && session
                .plan
                .offer(0, DraftKind::Model, length, 0, 1.0, Some(0.01))
                .is_some()
        {
            length += 1;
        }
        assert!(
            session
                .plan
                .offer(0, DraftKind::Model, 0, 1, 1.0, Some(0.5))
                .is_none()
        );
        length
    };
    let mut fixed = session(Policy::Fixed(6), [true, false, false]);
    fixed.plan();
    fixed.record(&[], &[]);
    assert_eq!(length(&mut fixed), 6);
    fixed.remaining = 4;
    assert_eq!(length(&mut fixed), 3, "the last token is the target's own");

    let mut threshold = session(Policy::Threshold, [true, false, false]);
    threshold.plan();
    threshold.record(&[], &[]);
    let node = |accepted| NodeOutcome {
        kind: DraftKind::Model,
        depth: 0,
        sibling: 0,
        evidence: Evidence::None,
        accepted,
    };
    let mut lengths = Vec::new();
    for step in 0..60 {
        lengths.push(length(&mut threshold));
        threshold.record(&[node(step > 30)], &[]);
    }
    assert_eq!(lengths[0], 3);
    assert_eq!(
        lengths[1..5],
        [0, 0, 0, 0],
        "nothing but probes under 0.50: {lengths:?}"
    );
    assert!(lengths[5..31].iter().all(|length| *length <= 1) && lengths.contains(&1));
}
