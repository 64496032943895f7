//! Looked-up tokens of one request, for whose rows the others wait.

use super::machines::{Machine, machine};
use super::session::{Session, session};
use super::sim::{Dice, Text, run, text};
use crate::policy::{
    Batch, Candidate, Controller, DraftKind, DraftState, Evidence, NodeOutcome, Policy, Protection,
    StepPlan,
};

/// A step of a GPU: rows of one group of eight cost what one of them costs.
fn grouped(rows: usize) -> f64 {
    [1.0, 1.15, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4][rows.div_ceil(8).clamp(1, 8) - 1]
}

fn plan<'a>(
    controller: &Controller,
    plan: &mut StepPlan,
    states: impl ExactSizeIterator<Item = &'a DraftState>,
    model: bool,
) {
    let batch = Batch {
        rows: states.len(),
        running: states.len(),
        max_rows: 64,
        positions: 100,
        prompt: false,
    };
    let candidates = states.map(|state| Candidate {
        state,
        kinds: [model, false, true],
        remaining: 1000,
        behind: [0; 3],
        policy: None,
        width: None,
    });
    controller.plan(plan, batch, candidates);
}

/// A request on a known device whose guesses have all been right, as has the model.
fn sure(protection: Protection) -> Session {
    let mut session = session(Policy::Goodput, [false, false, true]);
    (session.controller, session.step) = (Controller::new(Policy::Goodput, protection), grouped);
    (1..=64).for_each(|rows| session.controller.rehearsed(rows, 100, grouped(rows)));
    let drafted: Vec<NodeOutcome> = (0..4)
        .map(|depth| NodeOutcome {
            kind: DraftKind::Model,
            depth,
            sibling: 0,
            evidence: Evidence::None,
            accepted: true,
        })
        .collect();
    for _ in 0..60 {
        session.lookup(20, 1.0, &mut Dice(1));
        session.plan();
        session.record(&drafted, &[]);
    }
    session
}

/// Rows that a sure guess of 16 tokens gets among so many requests, which a model drafts for or nothing.
fn rows_among(requests: usize, protection: Protection, model: bool) -> usize {
    let Session {
        mut controller,
        state,
        ..
    } = sure(protection);
    // Or a plain step would be due, to know what that costs by now.
    controller.rehearsed(requests, 100, grouped(requests));
    let others = vec![DraftState::default(); requests - 1];
    let mut step = StepPlan::default();
    let states: Vec<&DraftState> = [&state].into_iter().chain(&others).collect();
    plan(&controller, &mut step, states.into_iter(), model);
    step.offer_guess(0, 20, 16)
}

#[test]
fn neighbours_wait_only_for_rows_that_cost_them_nothing() {
    let rows_among = |requests, protection| rows_among(requests, protection, false);
    // Its own row and 15 more are two groups.
    assert_eq!(rows_among(1, Protection::EachRequest), 15);
    assert_eq!(rows_among(4, Protection::EachRequest), 4);
    assert_eq!(rows_among(8, Protection::EachRequest), 0);
    assert!(rows_among(8, Protection::Batch) >= 8);
}

#[test]
fn a_guess_leaves_a_row_to_each_neighbour_that_waits_for_it() {
    let rows_among = |requests| rows_among(requests, Protection::EachRequest, true);
    assert_eq!(rows_among(8), 1);
    assert_eq!(rows_among(6), 5);
    assert_eq!(rows_among(4), 9);
}

#[test]
fn what_short_matches_suggest_costs_neighbours_little() {
    for requests in [4, 8] {
        let mut controller = Controller::new(Policy::Goodput, Protection::EachRequest);
        (1..=17).for_each(|rows| controller.rehearsed(rows, 100, grouped(rows)));
        for round in 0..4 {
            // Half of the time there is a match, and it is seldom worth a row.
            let mut texts: Vec<Text<'_>> = (0..requests)
                .map(|number| Text {
                    guess: Some(Box::new(move |at| {
                        let roll = Dice((at * requests + number) as u64).roll();
                        let likely = if roll < 0.05 { 0.8 } else { 0.1 };
                        (roll < 0.5).then_some((1 + at % 3, likely))
                    })),
                    ..text(128, |_| 0.1)
                })
                .collect();
            let machine = Machine {
                noise: 0.05,
                ..machine(grouped, 0.3)
            };
            run(&mut controller, &machine, &mut texts, &mut Dice(6 + round));
            let speedups = texts.iter().map(Text::speedup);
            let worst = speedups.fold(f64::INFINITY, f64::min);
            assert!(worst > 0.98, "{requests} at once, {round}: {worst}");
        }
    }
}
