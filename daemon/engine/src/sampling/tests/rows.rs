//! What is read of a row of logits, and of which rows nothing can be chosen.

use tandem_model::logits::{Leading, LogitsRow, Rest};
use tandem_model::math;

use crate::sampling::{KeptRow, Sampler, SamplingParams};

/// Logits that nobody may read.
#[derive(Debug)]
struct Away;

impl Rest for Away {
    fn values(&self, row: usize) -> &[f32] {
        panic!("row {row} was read")
    }
}

#[test]
fn a_greedy_choice_reads_nothing_but_what_leads() {
    let mut values = vec![0.25_f32; 300];
    (values[17], values[200]) = (3.0, 3.0);
    let leading = Leading::of(&values);
    let row = LogitsRow::told(&leading, &Away, 5);
    let sampler = Sampler::new(SamplingParams::greedy(), &[1, 2], 0);
    assert!(!sampler.reads_values());
    assert_eq!(sampler.distribution(row, &[3]).certain(), Some(17));
    assert_eq!(sampler.distribution(&values, &[3]).certain(), Some(17));
    assert_eq!(
        row.leading().probs,
        LogitsRow::from(&values).leading().probs
    );
}

#[test]
fn a_row_without_a_finite_maximum_decides_nothing() {
    let choose = |values: &[f32], temperature: f32| {
        let params = SamplingParams {
            temperature,
            ..SamplingParams::default()
        };
        let mut sampler = Sampler::new(params, &[], 1);
        let distribution = sampler.distribution(values, &[]);
        sampler.draw(&distribution, 0)
    };
    let [nan, high, low] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for (values, expected) in [
        ([nan; 6], false),
        ([low; 6], false),
        ([nan, low, nan, low, nan, low], false),
        ([1.0, 2.0, high, 3.0, nan, low], false),
        ([high; 6], false),
        ([low, low, nan, -3.0, low, nan], true),
        ([1.0, 2.0, -1e38, 3e38, 0.0, 1.0], true),
        ([0.0; 6], true),
    ] {
        for temperature in [0.0, 0.01, 1.0, 100.0] {
            let chosen = choose(&values, temperature);
            let row = LogitsRow::from(&values);
            assert_eq!(row.decides(chosen), expected, "{values:?}: {chosen}");
            let leading = Leading::of(&values);
            let told = LogitsRow::told(&leading, &Away, 0);
            assert_eq!(told.decides(chosen), expected, "{values:?} as told");
        }
    }
}

#[test]
fn a_kept_row_is_the_row() {
    let values: Vec<f32> = (0..200).map(|at| (at * 37 % 101) as f32 / 9.0).collect();
    let params = SamplingParams {
        temperature: 0.8,
        ..SamplingParams::default()
    };
    let sampler = Sampler::new(params, &[], 1);
    assert!(sampler.reads_values());
    let kept = KeptRow::of((&values).into(), true);
    assert_eq!(
        sampler.distribution(kept.row(), &[]),
        sampler.distribution(&values, &[])
    );
    assert_eq!(kept.row().likeliest() as usize, math::argmax(&values));
}
