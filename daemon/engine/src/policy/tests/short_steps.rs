//! Where steps are cheap and short, on texts that a real draft saw: a request is over after some fifty steps, so what is not
//! known by then is of no use to it.

use super::device::Device;
use super::replay::{Method, Played, Said, play, traces};
use super::sim::{Dice, controller};
use crate::policy::{Controller, Policy};

const GOODPUT: Method = (None, None);
const PLAIN: Method = (Some(Policy::Fixed(0)), None);
/// Milliseconds that the first and the second step of a shape take longer.
const COLD: [f64; 2] = [1.5, 1.5];

/// A factor on the time of one row, between measured ones.
fn between(points: &[(usize, f64)], rows: usize) -> f64 {
    let next = points.iter().position(|point| point.0 >= rows);
    let next = next.unwrap_or(points.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (points[next - 1], points[next]);
    y0 + (y1 - y0) * (rows as f64 - x0 as f64) / (x1 - x0) as f64
}

/// Milliseconds of a target of 6.9 billion parameters on an H200, and of the host's part.
pub(super) fn target(rows: usize) -> f64 {
    let points = [
        (1, 1.0),
        (2, 1.01),
        (4, 1.05),
        (8, 1.09),
        (9, 1.22),
        (16, 1.32),
        (17, 1.6),
        (32, 1.8),
        (64, 2.9),
    ];
    1.98 * between(&points, rows) + 0.02 * rows as f64
}

/// The same of a draft of 20 million.
fn draft(rows: usize) -> f64 {
    let points = [(1, 1.0), (2, 1.12), (4, 1.19), (8, 1.34), (16, 1.75)];
    0.103 * between(&points, rows) + 0.06 * rows as f64
}

fn device(cold: [f64; 2], noise: f64) -> Device {
    Device {
        cold,
        noise,
        ..Device::new(target, draft)
    }
}

/// The speed-up of the best chain of one length on a device that has nothing to prepare, and that length.
fn best_fixed(text: &[Said]) -> (f64, usize) {
    let speedup = |length| {
        let method = (Some(Policy::Fixed(length)), None);
        let mut controller = controller(Policy::Goodput);
        let played = play(
            &mut controller,
            &mut device([0.0; 2], 0.0),
            text,
            method,
            &mut Dice(1),
        );
        (played.speedup(), length)
    };
    let best = (1..=12).map(speedup).max_by(|a, b| a.0.total_cmp(&b.0));
    best.expect("not empty")
}

/// Decodes a text so many times with one controller, each time plainly before.
fn requests(
    device: &mut Device,
    (text, count): (&[Said], usize),
    rehearsed: bool,
    seed: u64,
) -> (Controller, Vec<Played>) {
    let (mut controller, mut dice) = (controller(Policy::Goodput), Dice(seed));
    if rehearsed {
        device.rehearse(&mut controller, &mut dice);
    }
    let played = (0..count)
        .map(|_| {
            play(&mut controller, device, text, PLAIN, &mut dice);
            play(&mut controller, device, text, GOODPUT, &mut dice)
        })
        .collect();
    (controller, played)
}

/// Geometric means over texts and seeds of the first request's speed-up, the third's, and the best fixed length's.
fn means(cold: [f64; 2], rehearsed: bool) -> [f64; 3] {
    let mut logarithms = [0.0; 3];
    let (texts, seeds) = (traces(), 4);
    for (_, text) in &texts {
        for seed in 0..seeds {
            let mut device = device(cold, 0.1);
            let (_, played) = requests(&mut device, (text, 3), rehearsed, seed);
            let speedups = [played[0].speedup(), played[2].speedup(), best_fixed(text).0];
            for (sum, speedup) in logarithms.iter_mut().zip(speedups) {
                *sum += f64::ln(speedup);
            }
        }
    }
    logarithms.map(|sum| (sum / (texts.len() as f64 * seeds as f64)).exp())
}

#[test]
fn the_first_request_beats_the_best_fixed_length_of_its_text() {
    let [first, third, best] = means(COLD, true);
    assert!(first > best && third > best, "{first}, {third}, {best}");
}

#[test]
fn every_text_gains_from_the_first_request_on() {
    for (name, text) in traces() {
        let (_, played) = requests(&mut device(COLD, 0.1), (&text, 2), true, 3);
        for played in played {
            assert!(played.speedup() > 1.3, "{name}: {}", played.speedup());
        }
    }
}

#[test]
fn siblings_do_not_take_the_cheap_rows_of_those_that_go_on() {
    for (name, text) in traces() {
        let mean = |width| {
            let seeds = 8;
            let logarithms = (0..seeds).map(|seed| {
                let (mut device, mut controller) = (device(COLD, 0.1), controller(Policy::Goodput));
                let mut dice = Dice(seed);
                device.rehearse(&mut controller, &mut dice);
                let mut last = 0.0;
                for _ in 0..4 {
                    play(&mut controller, &mut device, &text, PLAIN, &mut dice);
                    let method = (None, width);
                    last = play(&mut controller, &mut device, &text, method, &mut dice).speedup();
                }
                f64::ln(last)
            });
            (logarithms.sum::<f64>() / seeds as f64).exp()
        };
        let (trees, chains) = (mean(None), mean(Some(1)));
        assert!(trees > 0.98 * chains, "{name}: {trees} and {chains}");
    }
}

#[test]
fn what_a_device_prepares_is_not_taken_for_what_steps_cost() {
    let text = &traces()[0].1;
    let mut device = device(COLD, 0.0);
    let (controller, played) = requests(&mut device, (text, 3), false, 1);
    assert!(played[0].steps.iter().any(|step| step.cold), "it is cold");
    let costs = controller.costs();
    assert!(costs.measured_steps().len() > 4);
    for step in costs.measured_steps() {
        let off = step.seconds / target(step.rows) - 1.0;
        assert!(off.abs() < 1e-6, "{step:?} is off by {off}");
    }
}

#[test]
fn a_draft_that_is_sure_and_wrong_costs_its_allowance_at_most() {
    let wrong = vec![Said::wrong(0.95); 128];
    for rehearsed in [true, false] {
        let mut device = device(COLD, 0.0);
        let (_, played) = requests(&mut device, (&wrong, 3), rehearsed, 1);
        // Where nothing was rehearsed, what the device prepares in one step comes on top.
        let unknown = if rehearsed { 0.5 } else { 1.0 };
        for played in played {
            let allowance = 10.0 * target(1) + 0.02 * played.seconds;
            let lost = played.lost - unknown * target(1);
            assert!(lost < allowance, "{lost} of {allowance}");
        }
    }
}

#[test]
#[ignore = "a report: --nocapture shows it"]
#[expect(clippy::print_stdout, reason = "a report")]
fn report() {
    println!("text: best fixed length; first, second, third, tenth request");
    for (name, cold, rehearsed) in [
        ("nothing to prepare", [0.0; 2], false),
        ("cold", COLD, false),
        ("rehearsed", COLD, true),
    ] {
        println!("{name}");
        for (text, said) in traces() {
            let (best, length) = best_fixed(&said);
            let (_, played) = requests(&mut device(cold, 0.1), (&said, 10), rehearsed, 1);
            let at = |request: usize| played[request].speedup();
            println!(
                "  {text:<8} {best:.2} ({length:>2}); {:.2} {:.2} {:.2} {:.2}",
                at(0),
                at(1),
                at(2),
                at(9)
            );
        }
        println!(
            "  mean {:.2?} with the best fixed length last",
            means(cold, rehearsed)
        );
    }
}
