//! Looked-up tokens of one request.

use super::session::session;
use super::sim::Dice;
use crate::policy::{DraftKind, Policy};

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
