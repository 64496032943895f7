//! A request that asks for chains gets no siblings, however cheap rows are.

use crate::policy::{
    Batch, Candidate, Controller, DraftKind, DraftState, Policy, Protection, StepPlan, StepTimes,
};

/// Siblings that a plan admits at the root, of four that are all likely, where rows are free.
fn siblings(width: Option<usize>) -> usize {
    let mut controller = Controller::new(Policy::Goodput, Protection::EachRequest);
    let state = DraftState::default();
    let mut plan = StepPlan::default();
    let batch = Batch {
        rows: 1,
        running: 1,
        max_rows: 64,
        positions: 10,
        prompt: false,
    };
    let candidate = || Candidate {
        state: &state,
        kinds: [true, false, false],
        remaining: 100,
        behind: [0; DraftKind::COUNT],
        policy: None,
        width,
    };
    controller.plan(&mut plan, batch, [candidate()].into_iter());
    for rows in [1, 2, 8] {
        let times = StepTimes {
            rows,
            verify: 1.0,
            ..StepTimes::default()
        };
        controller.record_step(&mut plan, &times);
    }
    controller.plan(&mut plan, batch, [candidate()].into_iter());
    assert!(plan.round(0, DraftKind::Model, 0, 1.0));
    let offered = |sibling| plan.offer(0, DraftKind::Model, 0, sibling, 1.0, Some(0.24));
    (0..4).map_while(offered).count()
}

#[test]
fn width_limits_siblings() {
    assert_eq!(siblings(None), 4, "rows are free");
    assert_eq!(siblings(Some(1)), 1, "a chain");
    assert_eq!(siblings(Some(3)), 3);
}
