//! The bound on losses, whatever the text and the machine do.

use proptest::prelude::*;

use super::machines::{Machine, chunked, flat, linear, machine, shallow, steep};
use super::sim::{Dice, Text, controller, run, text};
use crate::policy::Policy;

/// No time may come at which a request has lost more than ten plain steps and 2 % of its time until then, measured against
/// what the controller takes plain decoding for, plus what it could not know: by how much the drafts of one step took
/// longer than expected, and how far its idea of ten plain steps moved.
fn check(texts: &[Text<'_>]) {
    for text in texts {
        let (least, most) = text.plain_range;
        let unknown = text.surprise + 10.0 * (most - least) + 1e-9;
        assert!(
            text.overdrawn <= unknown,
            "overdrawn by {} seconds, of which {unknown} could not be known",
            text.overdrawn
        );
    }
}

type Acceptance = fn(usize) -> f64;

#[test]
fn adversarial_text_loses_no_more_than_the_allowance() {
    let flips: [(&str, Acceptance); 6] = [
        ("never", |_| 0.0),
        ("alternating", |token| f64::from(u8::from(token % 2 == 0))),
        ("short bursts", |token| {
            f64::from(u8::from(token / 7 % 2 == 0))
        }),
        ("bursts", |token| f64::from(u8::from(token / 40 % 2 == 0))),
        ("long bursts", |token| {
            f64::from(u8::from(token / 300 % 2 == 0))
        }),
        ("late turn", |token| f64::from(u8::from(token < 1500))),
    ];
    for (cost, step) in [
        ("flat", flat as fn(usize) -> f64),
        ("chunked", chunked),
        ("shallow", shallow),
        ("steep", steep),
        ("linear", linear),
    ] {
        for (name, flip) in flips {
            let machine = machine(step, 0.05);
            let mut texts = [text(3000, flip)];
            run(
                &mut controller(Policy::Goodput),
                &machine,
                &mut texts,
                &mut Dice(1),
            );
            check(&texts);
            assert!(
                texts[0].overdrawn <= 0.0,
                "{cost}, {name}: {}",
                texts[0].overdrawn
            );
            assert!(
                texts[0].speedup() > 0.975,
                "{cost}, {name}: {}",
                texts[0].speedup()
            );
        }
    }
}

#[test]
fn costs_that_double_and_halve_are_followed() {
    for drift in [
        (|now| if now < 700.0 { 1.0 } else { 2.0 }) as fn(f64) -> f64,
        |now| if now < 700.0 { 1.0 } else { 0.5 },
        |now| 1.0 + (now / 1000.0).min(1.0),
        |now| 2.0 - (now / 1000.0).min(1.0),
    ] {
        for acceptance in [0.05, 0.5, 0.8] {
            let machine = Machine {
                drift,
                noise: 0.1,
                ..machine(chunked, 0.02)
            };
            let mut texts = [text(3000, move |_| acceptance)];
            let mut controller = controller(Policy::Goodput);
            run(&mut controller, &machine, &mut texts, &mut Dice(2));
            let now = texts[0].elapsed;
            let estimate = controller.costs().step(1, 100) / drift(now);
            assert!((estimate - 1.0).abs() < 0.1, "{estimate}");
            check(&texts);
        }
    }
}

/// Acceptance that changes after so many tokens, and to what.
fn random_text() -> impl Strategy<Value = Vec<(usize, f64)>> {
    let level = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64];
    prop::collection::vec((1_usize..200, level), 1..20)
}

fn at(pieces: &[(usize, f64)], token: usize) -> f64 {
    let total: usize = pieces.iter().map(|piece| piece.0).sum();
    let mut rest = token % total;
    for &(length, level) in pieces {
        if rest < length {
            return level;
        }
        rest -= length;
    }
    0.0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_and_no_machine_breaks_the_bound(
        pieces in prop::collection::vec(random_text(), 1..4),
        curve in 0_usize..5,
        round in 0.0..0.5_f64,
        noise in prop_oneof![Just(0.0), 0.0..0.2_f64],
        seed in any::<u64>(),
    ) {
        let step = [flat as fn(usize) -> f64, shallow, chunked, steep, linear][curve];
        let machine = Machine { noise, ..machine(step, round) };
        let mut texts: Vec<_> = pieces.iter().map(|p| text(800, move |token| at(p, token))).collect();
        run(&mut controller(Policy::Goodput), &machine, &mut texts, &mut Dice(seed));
        check(&texts);
    }
}
