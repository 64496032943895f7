//! The same promise through the public function and its real random numbers; entropy is fixed, so nothing is flaky.

use std::sync::Arc;

use tandem_model::TokenId;

use super::models::Model;
use crate::sampling::SamplingParams;
use crate::verify::{Draft, verify};

const TRIALS: u64 = 40_000;

/// Sum of squared deviations over the expected counts.
fn chi_square(counts: &[u64], probs: &[f64]) -> f64 {
    let trials = counts.iter().sum::<u64>() as f64;
    counts
        .iter()
        .zip(probs)
        .map(|(&count, prob)| (count as f64 - trials * prob).powi(2) / (trials * prob))
        .sum()
}

/// Two tokens per trial: a tree of two children, the first with a drawn child and the second with a guess.
fn two_tokens(target: &Model, draft_model: &Model, entropy: u64) -> [TokenId; 2] {
    let mut sampler = target.sampler(entropy);
    let position = super::models::PROMPT.len();
    let mut draft = Draft::empty();
    let first = Arc::new(draft_model.distribution(&[]));
    let tokens = sampler.draw_distinct(&first, position, 2);
    for &token in &tokens {
        draft.push(token, None, Some(Arc::clone(&first)));
    }
    let second = Arc::new(draft_model.distribution(&tokens[..1]));
    let token = sampler.draw(&second, position + 1);
    draft.push(token, Some(0), Some(second));
    draft.push(2, Some(1), None);

    let mut rows = vec![target.logits(&[])];
    rows.extend(tokens.iter().map(|&token| target.logits(&[token])));
    rows.push(target.logits(&[tokens[0], draft.nodes[2].token]));
    rows.push(target.logits(&[tokens[1], 2]));
    let verdict = verify(&draft, &mut sampler, position, |node| {
        &rows[node.map_or(0, |index| index + 1)]
    });
    let mut text: Vec<TokenId> = verdict
        .accepted
        .iter()
        .map(|&index| draft.nodes[index].token)
        .collect();
    text.push(verdict.next);
    if text.len() == 1 {
        let distribution = sampler.distribution(&target.logits(&text), &text);
        text.push(sampler.draw(&distribution, position + 1));
    }
    [text[0], text[1]]
}

fn statistic(target: &Model, draft: &Model) -> f64 {
    let mut counts = vec![0; target.vocabulary.pow(2)];
    for trial in 0..TRIALS {
        let [first, second] = two_tokens(target, draft, trial);
        counts[first as usize * target.vocabulary + second as usize] += 1;
    }
    chi_square(&counts, &target.joint(2))
}

#[test]
fn drawn_texts_fit_the_target() {
    // 24 degrees of freedom: 59.4 is exceeded once in 10⁴ fair runs.
    let fit = statistic(&Model::new(5, 1), &Model::new(5, 2));
    assert!(fit < 59.4, "{fit}");
}

#[test]
fn the_statistic_notices_a_wrong_target() {
    let warm = SamplingParams {
        temperature: 1.1,
        ..super::models::plain()
    };
    let (target, other) = (Model::new(5, 1), Model::new(5, 1).with(warm));
    let mut counts = vec![0; 25];
    for trial in 0..TRIALS {
        let [first, second] = two_tokens(&target, &Model::new(5, 2), trial);
        counts[first as usize * 5 + second as usize] += 1;
    }
    assert!(chi_square(&counts, &other.joint(2)) > 100.0);
}
