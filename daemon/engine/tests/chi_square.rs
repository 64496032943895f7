//! Tokens sampled with a draft have the target's own distribution: a chi-square test of first and second tokens on the real
//! pair, on the device under test. It takes minutes:
//!
//! `cargo test --release -p tandem-engine --test chi_square -- --ignored --nocapture`

mod common;

use std::collections::HashMap;
use std::time::Instant;

use common::{LIMITS, default_target, encode, model_on_device, pair, prompts, run_all};
use tandem_engine::Request;
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::sampling::{Sampler, SamplingParams};
use tandem_model::TokenId;
use tandem_model::model::Row;

/// Pairs of tokens that are drawn.
const DRAWS: usize = 20_000;
/// Cells that are expected to be hit less often are one.
const LEAST: f64 = 8.0;

fn sampling() -> SamplingParams {
    SamplingParams {
        temperature: 1.0,
        top_p: 0.9,
        ..SamplingParams::default()
    }
}

/// Probability of each pair of first and second token, from the target alone; the first is one that a plain prompt chooses.
fn expected(prompt: &[TokenId]) -> HashMap<[TokenId; 2], f64> {
    let mut model = model_on_device(&default_target(), 1024);
    let slot = model.open().expect("a cache");
    let sampler = Sampler::new(sampling(), prompt, 0);
    let mut feed = |from: usize, tokens: &[TokenId], drafted: &[TokenId]| {
        model.truncate(slot, from);
        let rows: Vec<Row> = Row::chain(slot, tokens).collect();
        let logits = model.forward(&rows, &[rows.len() - 1]).expect("it runs");
        let distribution = sampler.distribution(logits.row(0), drafted);
        distribution.iter().collect::<Vec<_>>()
    };
    let mut pairs = HashMap::new();
    for (first, p) in feed(0, prompt, &[]) {
        for (second, q) in feed(prompt.len(), &[first], &[first]) {
            pairs.insert([first, second], f64::from(p) * f64::from(q));
        }
    }
    pairs
}

/// Probability that a chi-square variable of so many degrees exceeds `x` (Wilson and Hilferty's approximation).
fn p_value(x: f64, degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    let z = ((x / degrees).cbrt() - (1.0 - spread)) / spread.sqrt();
    // Abramowitz and Stegun 7.1.26, within 2e-7.
    let t = 1.0 / (1.0 + 0.327_591_1 * (z.abs() / 2f64.sqrt()));
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = 0.5 * series * (-z * z / 2.0).exp();
    if z > 0.0 { tail } else { 1.0 - tail }
}

#[test]
#[ignore = "takes minutes"]
#[expect(clippy::print_stdout, reason = "the p-value is what one wants to see")]
fn sampled_tokens_have_the_targets_distribution() {
    let loaded = pair(true);
    let (_, text) = &prompts()[2];
    let prompt = encode(&loaded, text);
    let mut engine = Engine::new(
        loaded,
        EngineOptions {
            max_sequences: 16,
            lookup_history: Some(1 << 20),
            ..LIMITS
        },
    );
    let mut counts: HashMap<[TokenId; 2], f64> = HashMap::new();
    let (mut drawn, mut drafted, mut accepted, began) = (0, 0, 0, Instant::now());
    while drawn < DRAWS {
        for _ in 0..16 {
            let mut request = Request::new(prompt.clone(), 4);
            request.sampling = sampling();
            request.entropy = 1 + drawn as u64;
            request.draft_length = Some(2);
            drawn += 1;
            engine.submit(request).expect("a sound request");
        }
        for ran in run_all(&mut engine).into_values() {
            if let Some((_, stats)) = &ran.end {
                drafted += stats.draft_tokens;
                accepted += stats.accepted_tokens;
            }
            if let [first, second, ..] = ran.tokens[..] {
                *counts.entry([first, second]).or_default() += 1.0;
            }
        }
    }
    assert!(
        accepted > drawn as u64 / 8,
        "the draft was of use: {accepted} of {drafted} drafted tokens accepted"
    );
    let (mut square, mut cells) = (0.0, 0.0);
    let (mut rest_expected, mut rest_found) = (0.0, drawn as f64);
    for (pair, probability) in expected(&prompt) {
        let expected = probability * drawn as f64;
        if expected < LEAST {
            rest_expected += expected;
            continue;
        }
        let found = counts.get(&pair).copied().unwrap_or(0.0);
        rest_found -= found;
        square += (found - expected).powi(2) / expected;
        cells += 1.0;
    }
    square += (rest_found - rest_expected).powi(2) / rest_expected.max(1.0);
    let p = p_value(square, cells);
    println!(
        "{drawn} draws, {accepted} of {drafted} drafted tokens accepted, {cells} cells: chi-square {square:.1}, p = {p:.3}, {:.0?}",
        began.elapsed()
    );
    assert!(
        p > 1e-4,
        "chi-square {square:.1} over {cells} cells, p = {p:.2e}"
    );
}
