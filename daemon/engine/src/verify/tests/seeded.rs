//! With a seed, or greedy, the text is that of plain decoding, whatever is drafted.

use std::sync::Arc;

use proptest::prelude::*;
use tandem_model::TokenId;

use super::models::{Model, PROMPT};
use crate::sampling::{Sampler, SamplingParams};
use crate::verify::{Draft, verify};

const LENGTH: usize = 16;

fn by_plain_decoding(model: &Model) -> Vec<TokenId> {
    let mut sampler = model.sampler(1);
    let mut text = Vec::new();
    while text.len() < LENGTH {
        let distribution = sampler.distribution(&model.logits(&text), &[]);
        let token = sampler.draw(&distribution, PROMPT.len() + text.len());
        sampler.commit(token);
        text.push(token);
    }
    text
}

/// Decodes with `propose` (committed text, sampler) as drafter; also counts accepted tokens.
fn with_drafts(
    model: &Model,
    mut propose: impl FnMut(&[TokenId], &mut Sampler) -> Draft,
) -> (Vec<TokenId>, usize) {
    let mut sampler = model.sampler(2);
    let (mut text, mut accepted) = (Vec::new(), 0);
    while text.len() < LENGTH {
        let draft = propose(&text, &mut sampler);
        let mut contexts: Vec<Vec<TokenId>> = Vec::new();
        for node in &draft.nodes {
            let before = node.parent.map_or(&text, |parent| &contexts[parent]);
            contexts.push([&before[..], &[node.token]].concat());
        }
        let root = model.logits(&text);
        let rows: Vec<_> = contexts
            .iter()
            .map(|context| model.logits(context))
            .collect();
        let row = |node: Option<usize>| node.map_or(&root[..], |index| &rows[index]);
        let verdict = verify(&draft, &mut sampler, PROMPT.len() + text.len(), row);
        accepted += verdict.accepted.len();
        let tokens = verdict
            .accepted
            .iter()
            .map(|&index| draft.nodes[index].token);
        for token in tokens.chain([verdict.next]) {
            sampler.commit(token);
            text.push(token);
        }
    }
    text.truncate(LENGTH);
    (text, accepted)
}

prop_compose! {
    fn params()(
        temperature in prop_oneof![Just(0.0_f32), 0.1_f32..2.0],
        top_k in 0_usize..6,
        top_p in 0.5_f32..=1.0,
        min_p in 0.0_f32..0.2,
        repetition_penalty in prop_oneof![Just(1.0_f32), 0.8_f32..1.5],
        frequency_penalty in prop_oneof![Just(0.0_f32), -0.5_f32..1.0],
        seed: u64,
    ) -> SamplingParams {
        SamplingParams {
            temperature, top_k, top_p, min_p, repetition_penalty, frequency_penalty, seed: Some(seed),
            ..SamplingParams::greedy()
        }
    }
}

proptest! {
    #[test]
    fn any_tree_of_any_tokens(
        params in params(),
        salt: u64,
        // Token, which earlier node is the parent (0: none), whether probabilities come along.
        nodes in prop::collection::vec((0_u32..9, 0_usize..8, any::<bool>()), 0..8),
    ) {
        let model = Model::new(8, salt).with(params);
        let probs = Arc::new(Model::new(8, !salt).distribution(&[]));
        let mut draft = Draft::empty();
        for (index, (token, parent, drawn)) in nodes.into_iter().enumerate() {
            let parent = (parent % (index + 1)).checked_sub(1);
            draft.push(token, parent, drawn.then(|| Arc::clone(&probs)));
        }
        let (text, _) = with_drafts(&model, |_, _| draft.clone());
        prop_assert_eq!(text, by_plain_decoding(&model));
    }

    #[test]
    fn a_draft_model_with_the_same_noise(params in params(), salt: u64, width in 1_usize..4, depth in 1_usize..4) {
        let model = Model::new(8, salt).with(params);
        // Half of the time the draft is the target itself.
        let other = Model { salt: salt ^ (salt >> 63), ..model.clone() };
        let mut offered = 0;
        let (text, accepted) = with_drafts(&model, |text, sampler| {
            let mut draft = Draft::empty();
            let mut drafted = Vec::new();
            let mut parent = None;
            for level in 0..depth {
                let logits = other.logits(&[text, &drafted].concat());
                let distribution = Arc::new(sampler.distribution(&logits, &drafted));
                let tokens = sampler.draw_distinct(&distribution, PROMPT.len() + text.len() + level, width);
                let indexes: Vec<_> = tokens.iter()
                    .map(|&token| draft.push(token, parent, Some(Arc::clone(&distribution))))
                    .collect();
                parent = Some(indexes[0]);
                drafted.push(tokens[0]);
            }
            offered += depth;
            draft
        });
        prop_assert_eq!(text, by_plain_decoding(&model));
        if other.salt == model.salt {
            prop_assert_eq!(accepted, offered, "a perfect draft is never rejected");
        }
    }
}

#[test]
fn different_seeds_give_different_texts() {
    let text = |seed| {
        let params = SamplingParams {
            seed: Some(seed),
            ..super::models::plain()
        };
        by_plain_decoding(&Model::new(8, 5).with(params))
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn malformed_parents_end() {
    let model = Model::new(4, 1);
    let mut draft = Draft::empty();
    for parent in [None, Some(1), Some(3), Some(2), Some(99)] {
        for token in 0..4 {
            draft.push(token, parent, None);
        }
    }
    let row = model.logits(&[]);
    let verdict = verify(&draft, &mut model.sampler(3), 0, |_| &row[..]);
    assert!(
        verdict.accepted.len() <= 2 && verdict.next < 4,
        "{verdict:?}"
    );
}
