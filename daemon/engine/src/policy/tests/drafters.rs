//! Drafters that compute: catching up, parking, and the other policies.

use super::session::{Session, session};
use crate::policy::{CatchUp, CostModel, DraftKind, DraftTime, Evidence, NodeOutcome, Policy};

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
