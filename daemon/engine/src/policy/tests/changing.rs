//! Text that changes, requests that compete, and what the drafter itself knows.

use super::machines::{Machine, chunked, machine, shallow, steep};
use super::short_steps::target;
use super::sim::{Dice, Text, controller, run, text};
use crate::policy::{Controller, Policy, Protection};

fn single(policy: Policy, step: fn(usize) -> f64, text: Text<'_>) -> Text<'_> {
    let mut texts = [text];
    run(
        &mut controller(policy),
        &machine(step, 0.02),
        &mut texts,
        &mut Dice(7),
    );
    let [text] = texts;
    text
}

#[test]
fn probes_are_few_and_find_text_that_turned_good() {
    let bad = single(Policy::Goodput, steep, text(3000, |_| 0.1));
    assert!(bad.probes() <= 20, "{}", bad.probes());
    let turned = single(
        Policy::Goodput,
        shallow,
        text(5000, |token| if token < 1000 { 0.0 } else { 1.0 }),
    );
    // The longest back-off is 512 steps; after it a few probes suffice.
    let chosen =
        |(step, (drafted, probe)): &(usize, &(usize, bool))| *step > 1000 && *drafted > 0 && !probe;
    let back = turned.trace.iter().enumerate().find(chosen);
    let back = back.map(|(step, _)| step);
    assert!(back.is_some_and(|step| step < 1600), "{back:?}");
}

#[test]
fn two_state_text_beats_every_fixed_length() {
    let two_state = |token: usize| {
        if (token / 150).is_multiple_of(2) {
            0.9
        } else {
            0.02
        }
    };
    let adaptive = single(Policy::Goodput, chunked, text(6000, two_state)).speedup();
    let fixed = (0..=8)
        .map(|length| single(Policy::Fixed(length), chunked, text(6000, two_state)).speedup());
    let best = fixed.fold(0.0, f64::max);
    let threshold = single(Policy::Threshold, chunked, text(6000, two_state)).speedup();
    assert!(adaptive > best && adaptive > threshold);
}

#[test]
fn confidence_tells_tokens_apart() {
    // Every other token or so is hopeless, and the drafter knows.
    let acceptance = |token: usize| {
        if Dice(token as u64).roll() < 0.4 {
            0.05
        } else {
            0.95
        }
    };
    let blind = single(Policy::Goodput, shallow, text(4000, acceptance)).speedup();
    let seeing = Text {
        confidence: Some(Box::new(acceptance)),
        ..text(4000, acceptance)
    };
    let seeing = single(Policy::Goodput, shallow, seeing).speedup();
    assert!(seeing > 1.04 * blind, "{seeing} against {blind}");
}

#[test]
fn the_good_request_drafts_and_the_bad_one_does_not() {
    for protection in [Protection::Batch, Protection::EachRequest] {
        let mut controller = Controller::new(Policy::Goodput, protection);
        let mut texts = [text(3000, |_| 0.85), text(1500, |_| 0.02)];
        run(
            &mut controller,
            &machine(chunked, 0.02),
            &mut texts,
            &mut Dice(3),
        );
        let [good, bad] = texts;
        assert!(bad.drafted_steps() < 120, "{}", bad.drafted_steps());
        match protection {
            Protection::Batch => assert!(good.speedup() > 1.9),
            Protection::EachRequest => assert!(good.speedup() > 1.3 && bad.speedup() > 0.97),
        }
    }
}

#[test]
fn requests_that_all_gain_draft_together() {
    let mut controller = controller(Policy::Goodput);
    let mut texts: Vec<Text<'_>> = (0..4).map(|_| text(1500, |_| 0.8)).collect();
    run(
        &mut controller,
        &machine(chunked, 0.02),
        &mut texts,
        &mut Dice(5),
    );
    for text in &texts {
        assert!(text.speedup() > 1.4, "{}", text.speedup());
    }
    let stats = controller.stats();
    assert_eq!(
        stats.committed_tokens,
        texts.iter().map(|t| t.tokens as u64).sum::<u64>()
    );
    let ratio = stats.expected_speedup() / stats.measured_speedup();
    assert!((ratio - 1.0).abs() < 0.1, "{ratio}");
}

#[test]
fn a_round_that_does_not_pay_for_one_request_pays_for_eight() {
    // A step of a GPU: rows of the same group of eight are nearly free.
    fn grouped(rows: usize) -> f64 {
        [1.0, 1.1, 1.3, 1.65, 1.75, 2.1, 2.5, 2.7, 2.8][rows.div_ceil(8).min(8)]
    }
    let mut controller = controller(Policy::Goodput);
    for rows in 1..=17 {
        controller.rehearsed(rows, 100, grouped(rows));
    }
    let mut texts: Vec<Text<'_>> = (0..8)
        .map(|_| Text {
            behind: 60,
            ..text(256, |_| 0.7)
        })
        .collect();
    let machine = machine(grouped, 0.1);
    run(&mut controller, &machine, &mut texts, &mut Dice(6));
    // One that is unlucky at first holds back the others, whose steps it waits for.
    let least = texts.iter().map(Text::speedup);
    let least = least.fold(f64::INFINITY, f64::min);
    assert!(least > 1.05, "{least}");
    let total = texts.iter().map(Text::speedup).sum::<f64>() / 8.0;
    assert!(total > 1.14, "{total}");
}

#[test]
fn a_drafter_that_never_pays_is_parked() {
    let bad = single(Policy::Goodput, steep, text(1500, |_| 0.1));
    assert!(bad.state.tracks[0].probe.parked());
    let good = single(Policy::Goodput, chunked, text(1500, |_| 0.8));
    assert!(!good.state.tracks[0].probe.parked());
}

#[test]
fn unlike_requests_all_gain_by_drafting_together() {
    // In plain steps.
    fn device(rows: usize) -> f64 {
        target(rows) / target(1)
    }
    const KINDS: [[f64; 2]; 4] = [[0.95, 0.6], [0.9, 0.6], [0.7, 0.3], [0.5, 0.2]];
    for (requests, least, mean) in [(4, 1.0, 1.3), (8, 0.9, 1.07)] {
        let mut controller = controller(Policy::Goodput);
        for rows in 1..=17 {
            controller.rehearsed(rows, 100, device(rows));
        }
        for round in 0..3 {
            let mut texts: Vec<Text<'_>> = (0..requests)
                .map(|kind| Text {
                    behind: 20,
                    ..text(128, move |at| KINDS[kind % 4][at % 2])
                })
                .collect();
            let machine = Machine {
                noise: 0.05,
                ..machine(device, 0.065)
            };
            run(&mut controller, &machine, &mut texts, &mut Dice(6 + round));
            let speedups = texts.iter().map(Text::speedup);
            let total = speedups.clone().sum::<f64>() / requests as f64;
            let worst = speedups.fold(f64::INFINITY, f64::min);
            assert!(
                worst > least && total > mean,
                "{requests}: {worst}, mean {total}"
            );
        }
    }
}

#[test]
fn requests_that_do_not_gain_lose_little_together() {
    for (requests, likely) in [
        (2, 0.05),
        (4, 0.05),
        (8, 0.05),
        (2, 0.35),
        (4, 0.35),
        (8, 0.35),
    ] {
        let mut controller = controller(Policy::Goodput);
        // What the first ones cost to find out, the next ones know.
        for (round, least) in [0.9, 0.97, 0.97].into_iter().enumerate() {
            let mut texts: Vec<Text<'_>> = (0..requests)
                .map(|_| Text {
                    behind: 40,
                    ..text(128, move |_| likely)
                })
                .collect();
            let dice = &mut Dice(9 + round as u64);
            run(&mut controller, &machine(chunked, 0.2), &mut texts, dice);
            let speedups = texts.iter().map(Text::speedup);
            let worst = speedups.fold(f64::INFINITY, f64::min);
            assert!(worst > least, "{requests} of {likely}, {round}: {worst}");
        }
    }
}
