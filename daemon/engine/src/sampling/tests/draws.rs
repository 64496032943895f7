//! Independent draws: the inverse of the cumulative distribution, and its use.

use super::super::chance::locate;
use super::*;

#[test]
fn every_interval_has_the_length_of_its_weight() {
    // More than one block, weights that add up without rounding.
    let weights: Vec<f32> = (0..1500_u16).map(|index| f32::from(index % 5)).collect();
    let total: f32 = weights.iter().sum();
    let mut counts = vec![0_u16; weights.len()];
    for step in 0..total as u32 {
        counts[locate(&weights, f64::from(step) + 0.5)] += 1;
        counts[locate(&weights, f64::from(step))] += 1;
    }
    for (&count, &weight) in counts.iter().zip(&weights) {
        assert_eq!(f32::from(count), 2.0 * weight);
    }
}

#[test]
fn the_ends_stay_inside_the_support() {
    let weights = [0.0_f32, 1.0, 0.0, 2.0, 0.0];
    assert_eq!(locate(&weights, 0.0), 1);
    assert_eq!(locate(&weights, 3.0), 3, "rounding may reach the total");
    assert_eq!(locate(&[0.0_f64; 3], 0.0), 0);
}

#[test]
fn draws_fit_and_repeat_with_their_entropy() {
    let probs = [0.05, 0.4, 0.0, 0.25, 0.3];
    let distribution = distribution(&plain(), &logits_of(&probs));
    let tokens = |entropy| {
        let mut sampler = Sampler::new(plain(), &[], entropy);
        (0..20_000)
            .map(|_| sampler.draw(&distribution, 0))
            .collect::<Vec<_>>()
    };
    let drawn = tokens(1);
    assert_eq!(drawn, tokens(1));
    assert_ne!(drawn, tokens(2));
    let expected = |prob: f32| f64::from(prob) * drawn.len() as f64;
    let statistic: f64 = (0..)
        .zip(probs)
        .filter(|&(_, prob)| prob > 0.0)
        .map(|(token, prob)| {
            let count = drawn.iter().filter(|&&other| other == token).count() as f64;
            (count - expected(prob)).powi(2) / expected(prob)
        })
        .sum();
    // 3 degrees of freedom: 21.1 is exceeded once in 10⁴ fair runs.
    assert!(statistic < 21.1, "{statistic}");
    assert!(!drawn.contains(&2));
}

#[test]
fn distinct_draws_exhaust_the_support() {
    let distribution = distribution(&plain(), &logits_of(&[0.5, 0.0, 0.2, 0.3]));
    for seed in [None, Some(4)] {
        let mut sampler = Sampler::new(SamplingParams { seed, ..plain() }, &[], 6);
        let mut tokens = sampler.draw_distinct(&distribution, 3, 9);
        tokens.sort_unstable();
        assert_eq!(tokens, [0, 2, 3]);
        assert!(sampler.draw_distinct(&distribution, 3, 0).is_empty());
    }
}
