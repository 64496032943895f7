//! Text that drafts equally well throughout: nothing beats the best fixed length, and goodput comes close.

use super::machines::{best_fixed, chunked, flat, linear, machine, shallow, steep};
use super::sim::{Dice, controller, run, text};
use crate::policy::Policy;

#[test]
fn steady_text_is_within_three_percent_of_the_best_fixed_length() {
    let machines = [
        ("flat", machine(flat, 0.02)),
        ("shallow", machine(shallow, 0.02)),
        ("chunked", machine(chunked, 0.02)),
        ("chunked, dear rounds", machine(chunked, 0.1)),
        ("steep", machine(steep, 0.02)),
        ("linear", machine(linear, 0.05)),
    ];
    let mut failures = Vec::new();
    for (name, machine) in machines {
        for acceptance in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
            let (best, length) = best_fixed(&machine, acceptance);
            let (mut plain, mut elapsed) = (0.0, 0.0);
            for seed in 0..8 {
                let mut controller = controller(Policy::Goodput);
                let mut texts = [text(2000, |_| acceptance)];
                run(&mut controller, &machine, &mut texts, &mut Dice(seed));
                (plain, elapsed) = (plain + texts[0].plain, elapsed + texts[0].elapsed);
            }
            let got = plain / elapsed;
            let line = format!(
                "{name} at {acceptance}: {got:.3}, best {best:.3} with {length}: {:.3}",
                got / best
            );
            if got < 0.97 * best {
                failures.push(line);
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
