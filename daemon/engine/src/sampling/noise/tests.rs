//! The race against its definition, its marginals, and its exact numbers.

use super::*;
use crate::sampling::Distribution;

/// Skewed weights over many orders of magnitude, with holes.
fn skewed(vocabulary: u32, salt: u64) -> Distribution {
    scaled(vocabulary, salt, 1.0)
}

/// The same, times `scale`.
fn scaled(vocabulary: u32, salt: u64, scale: f64) -> Distribution {
    let weight = |token: u32| {
        let w = uniform(hash(salt, token));
        if token.is_multiple_of(7) {
            0.0
        } else {
            (scale * w.powi(40)) as f32
        }
    };
    Distribution::from_weights((0..vocabulary).map(weight).collect()).expect("some are positive")
}

fn full_race(noise: Noise, distribution: &Distribution, position: usize) -> Vec<Arrival> {
    let key = noise.key(position);
    let support =
        (0..distribution.weights().len()).filter(|&index| distribution.weights()[index] > 0.0);
    let arrival = |index: usize| {
        let token = distribution.token(index);
        let weight = f64::from(distribution.weights()[index]);
        Arrival {
            time: neg_ln_one_minus(uniform(hash(key, token))) / weight,
            token,
        }
    };
    let mut arrivals: Vec<_> = support.map(arrival).collect();
    arrivals.sort_by(|a, b| a.time.total_cmp(&b.time));
    arrivals
}

#[test]
fn the_shortcut_changes_nothing() {
    for position in 0..200 {
        let distribution = skewed(3000, position as u64);
        let noise = Noise::new(9);
        let all = full_race(noise, &distribution, position);
        for count in [0, 1, 3, 40] {
            assert_eq!(noise.first(&distribution, position, count), all[..count]);
        }
        assert_eq!(noise.draw(&distribution, position), all[0].token);
    }
}

/// Whether a token is late is first asked in single precision, which the largest and smallest weights leave.
#[test]
fn the_shortcut_holds_for_weights_of_any_size() {
    for (position, scale) in [1e-37, 1e-30, 1e-15, 1e15, 1e30, 3e38]
        .into_iter()
        .enumerate()
    {
        let distribution = scaled(3000, position as u64, scale);
        for seed in 0..40 {
            let noise = Noise::new(seed);
            let all = full_race(noise, &distribution, position);
            for count in [1, 4] {
                assert_eq!(noise.first(&distribution, position, count), all[..count]);
            }
        }
    }
}

/// Tokens that are left of a vocabulary race as they do in all of it.
#[test]
fn few_tokens_keep_their_noise() {
    for position in 0..100 {
        let whole = skewed(3000, position as u64);
        let mut few = whole.clone();
        few.ids = (0..3000).filter(|token| token % 3 == 1).collect();
        few.weights = few
            .ids
            .iter()
            .map(|&token| whole.weights[token as usize])
            .collect();
        let noise = Noise::new(4);
        let all = full_race(noise, &few, position);
        assert_eq!(noise.first(&few, position, 5), all[..5]);
        let of_whole = full_race(noise, &whole, position);
        let left = of_whole
            .into_iter()
            .filter(|arrival| arrival.token % 3 == 1);
        assert!(left.eq(all));
    }
}

#[test]
fn the_race_is_the_gumbel_argmax() {
    for position in 0..200 {
        let distribution = skewed(500, 77);
        let noise = Noise::new(3);
        let score = |token: u32| {
            let gumbel = -(-(1.0 - uniform(hash(noise.key(position), token))).ln()).ln();
            (distribution.weight(token) / distribution.total()).ln() + gumbel
        };
        let best = (0..500).max_by(|&a, &b| score(a).total_cmp(&score(b)));
        assert_eq!(Some(noise.draw(&distribution, position)), best);
    }
}

/// Numbers from an implementation in another language: a change would change the text of every stored seed.
#[test]
fn noise_is_fixed_forever() {
    for (seed, position, token, wanted) in [
        (0, 0, 0, 0.20310281705476096),
        (1, 2, 3, 0.4644077649833718),
        (42, 4096, 49_151, 0.06666407454398582),
        (u64::MAX, 1_000_000, 262_143, 0.17170803639184712),
    ] {
        assert_eq!(uniform(hash(Noise::new(seed).key(position), token)), wanted);
    }
}

fn chi_square(counts: &[u64], probs: &[f64]) -> f64 {
    let trials = counts.iter().sum::<u64>() as f64;
    let term =
        |(&count, prob): (&u64, &f64)| (count as f64 - trials * prob).powi(2) / (trials * prob);
    counts.iter().zip(probs).map(term).sum()
}

#[test]
fn marginals_fit_over_positions_and_over_seeds() {
    let weights = vec![1.0, 0.5, 0.01, 0.25, 0.0, 0.125, 0.7, 0.03];
    let distribution = Distribution::from_weights(weights).expect("weights are valid");
    let support: Vec<_> = distribution.iter().collect();
    let probs: Vec<f64> = support.iter().map(|&(_, prob)| f64::from(prob)).collect();
    let fit = |draw: &dyn Fn(u64) -> TokenId| {
        let mut counts = vec![0; support.len()];
        for trial in 0..50_000 {
            let token = draw(trial);
            let place = support.iter().position(|&(other, _)| other == token);
            counts[place.expect("only tokens of the support win")] += 1;
        }
        chi_square(&counts, &probs)
    };
    let over_positions = fit(&|trial| Noise::new(5).draw(&distribution, trial as usize));
    let over_seeds = fit(&|trial| Noise::new(trial).draw(&distribution, 17));
    // 6 degrees of freedom: 27.9 is exceeded once in 10⁴ fair runs.
    assert!(
        over_positions < 27.9 && over_seeds < 27.9,
        "{over_positions}, {over_seeds}"
    );
}

#[test]
fn neighbouring_positions_are_independent() {
    let distribution =
        Distribution::from_weights(vec![0.4, 0.3, 0.2, 0.1]).expect("weights are valid");
    let noise = Noise::new(8);
    let mut counts = vec![0; 16];
    for position in 0..50_000 {
        let pair = [0, 1].map(|step| noise.draw(&distribution, position * 2 + step) as usize);
        counts[pair[0] * 4 + pair[1]] += 1;
    }
    let probs: Vec<f64> = distribution
        .iter()
        .flat_map(|(_, a)| {
            distribution
                .iter()
                .map(move |(_, b)| f64::from(a) * f64::from(b))
        })
        .collect();
    // 15 degrees of freedom: 44.3 is exceeded once in 10⁴ fair runs.
    let fit = chi_square(&counts, &probs);
    assert!(fit < 44.3, "{fit}");
}
