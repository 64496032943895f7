//! Losslessness by arithmetic: the probability of every text, over every draw of drafter and verification.

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;

use super::models::{Model, plain};
use super::outcomes::{Outcomes, every_outcome};
use super::tree::{Proposer, grow};
use crate::sampling::{Distribution, SamplingParams};
use crate::verify::rejection::Chooser;
use crate::verify::{Draft, NextToken, Verdict, walk};

/// The part of `verify` for requests without a seed, on scripted randomness.
fn verify_on(draft: &Draft, target: &Model, chance: &mut Outcomes) -> Verdict {
    let sampler = target.sampler(0);
    let (mut probs, mut buffer) = (Distribution::one_hot(0), Vec::new());
    let mut chooser = Chooser {
        processor: &sampler.processor,
        probs: &mut probs,
        buffer: &mut buffer,
    };
    // Rows are looked up by node, as the engine does, and leak: they live as long as this test process.
    let row = |node: Option<usize>| LogitsRow::from(&*target.logits(&path(draft, node)).leak());
    walk(draft, row, |logits, drafted, children| {
        chooser.choose(draft, children, logits, drafted, chance)
    })
}

/// Tokens from the root to `node`.
fn path(draft: &Draft, node: Option<usize>) -> Vec<TokenId> {
    let Some(index) = node else { return Vec::new() };
    let node = &draft.nodes[index];
    [path(draft, node.parent), vec![node.token]].concat()
}

/// Checks that every text has the probability the target gives it; returns the expected number of accepted tokens.
fn check(target: &Model, proposer: &Proposer, width: usize, depth: usize) -> f64 {
    let length = depth + 1;
    let blocks = every_outcome(|chance| {
        let draft = grow(proposer, width, depth, chance);
        let verdict = verify_on(&draft, target, chance);
        let accepted = verdict
            .accepted
            .iter()
            .map(|&index| draft.nodes[index].token);
        let leaf = verdict.accepted.len() == depth;
        assert_eq!(verdict.kind == NextToken::Bonus, leaf || draft.is_empty());
        accepted.chain([verdict.next]).collect::<Vec<_>>()
    });
    let mut joint = vec![0.0; target.vocabulary.pow(length as u32)];
    for (block, probability) in &blocks {
        target.complete(block, *probability, length, &mut joint);
    }
    for (text, (&got, wanted)) in joint.iter().zip(target.joint(length)).enumerate() {
        assert!(
            (got - wanted).abs() < 1e-6,
            "text {text}: got {got}, wanted {wanted}"
        );
    }
    blocks
        .iter()
        .map(|(block, probability)| (block.len() - 1) as f64 * probability)
        .sum()
}

fn top_k(k: usize) -> SamplingParams {
    SamplingParams {
        top_k: k,
        ..plain()
    }
}

#[test]
fn chains_of_drawn_tokens() {
    for (vocabulary, depth) in [(3, 1), (6, 1), (5, 2), (4, 3)] {
        for salt in 0..4 {
            let draft = Model::new(vocabulary, 100 + salt);
            let target = Model::new(vocabulary, salt);
            check(&target, &Proposer::Drawn(draft), 1, depth);
        }
    }
}

#[test]
fn one_drawn_token_is_accepted_as_often_as_possible() {
    let (target, draft) = (Model::new(6, 7), Model::new(6, 8));
    let (p, q) = (target.distribution(&[]), draft.distribution(&[]));
    let overlap: f64 = (0..6)
        .map(|token| f64::from(p.prob(token).min(q.prob(token))))
        .sum();
    let accepted = check(&target, &Proposer::Drawn(draft), 1, 1);
    assert!(
        (accepted - overlap).abs() < 1e-6,
        "{accepted} of at most {overlap}"
    );
}

#[test]
fn trees_of_drawn_tokens() {
    for (vocabulary, width, depth) in [
        (3, 2, 1),
        (4, 3, 1),
        (6, 3, 1),
        (3, 3, 1),
        (3, 2, 2),
        (4, 2, 2),
    ] {
        for salt in 0..2 {
            let draft = Model::new(vocabulary, 200 + salt);
            let target = Model::new(vocabulary, 300 + salt);
            check(&target, &Proposer::Drawn(draft.clone()), width, depth);
            if depth == 1 {
                check(&target, &Proposer::Repeated(draft), width, depth);
            }
        }
    }
}

#[test]
fn more_children_are_accepted_more_often() {
    let target = Model::new(6, 31);
    let drawn = Proposer::Drawn(Model::new(6, 32));
    let rates: Vec<f64> = (1..=4)
        .map(|width| check(&target, &drawn, width, 1))
        .collect();
    assert!(rates.is_sorted_by(|a, b| a < b), "{rates:?}");
    // With every token offered one of them must stand.
    assert!((check(&target, &drawn, 6, 1) - 1.0).abs() < 1e-6);
}

#[test]
fn guesses_alone_and_as_siblings() {
    let target = Model::new(4, 41);
    for guesses in [
        vec![0],
        vec![3, 1],
        vec![2, 0, 1],
        vec![1, 1, 2],
        vec![9, 2],
        vec![0, 1, 2, 3],
    ] {
        let width = guesses.len();
        let expected: f64 = (0..4)
            .filter(|token| guesses.contains(token))
            .map(|token| f64::from(target.distribution(&[]).prob(token)))
            .sum();
        let accepted = check(&target, &Proposer::Guesses(guesses.clone()), width, 1);
        assert!(
            (accepted - expected).abs() < 1e-6,
            "{guesses:?}: {accepted}, not {expected}"
        );
        check(&target, &Proposer::Guesses(guesses), width.min(2), 2);
    }
}

#[test]
fn always_right_and_always_wrong() {
    let target = Model::new(5, 51).with(top_k(3));
    let right = check(&target, &Proposer::Drawn(target.clone()), 1, 3);
    assert!((right - 3.0).abs() < 1e-9, "{right}");
    let excluded = (0..5).find(|&token| target.distribution(&[]).prob(token) == 0.0);
    let wrong = Proposer::Guesses(vec![excluded.expect("two tokens are cut off")]);
    assert_eq!(check(&target, &wrong, 1, 1), 0.0);
    assert_eq!(
        check(&target, &Proposer::Guesses(Vec::new()), 1, 2),
        0.0,
        "nothing drafted"
    );
}

#[test]
fn supports_that_differ() {
    let full = |salt| Model::new(5, salt);
    for (target, draft) in [
        (full(61), full(62).with(top_k(2))),
        (full(63).with(top_k(2)), full(64)),
        (full(65).with(top_k(3)), full(66).with(top_k(2))),
        (full(67).with(top_k(1)), full(68)),
        (full(69), full(70).with(SamplingParams::greedy())),
        (full(71), Model::new(7, 72)),
        (full(73), Model::new(3, 74)),
    ] {
        for width in 1..=3 {
            check(&target, &Proposer::Drawn(draft.clone()), width, 1);
        }
        check(&target, &Proposer::Drawn(draft), 1, 2);
    }
}

#[test]
fn misdeclared_and_mixed_siblings() {
    for salt in 0..3 {
        let (target, draft) = (Model::new(4, 80 + salt), Model::new(4, 90 + salt));
        for token in 0..4 {
            check(&target, &Proposer::Misdeclared(token), 1, 1);
            check(
                &target,
                &Proposer::GuessThenDrawn(token, draft.clone()),
                2,
                1,
            );
        }
        check(&target, &Proposer::GuessThenDrawn(0, draft), 2, 2);
    }
}

#[test]
fn transforms_that_depend_on_the_drafted_prefix() {
    let params = SamplingParams {
        temperature: 0.7,
        top_p: 0.9,
        min_p: 0.05,
        repetition_penalty: 1.3,
        presence_penalty: 0.4,
        frequency_penalty: 0.6,
        logit_bias: [(2, 0.5)].into(),
        ..plain()
    };
    let target = Model::new(4, 81).with(params.clone());
    check(
        &target,
        &Proposer::Drawn(Model::new(4, 82).with(params)),
        1,
        3,
    );
    check(&target, &Proposer::Drawn(Model::new(4, 83)), 2, 2);
    check(&target, &Proposer::Guesses(vec![1, 1]), 1, 3);
}
