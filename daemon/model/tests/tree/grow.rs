//! Trees that grow.

use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, Slot};

use super::world::*;

/// Grows trees under several slots at once, a few rows at a time, and computes each in one forward elsewhere; returns
/// the logits of all rows, grown and at once.
fn both_ways(
    model: &mut dyn LanguageModel,
    noise: &mut Noise,
    contexts: &[usize],
) -> Vec<(Vec<f32>, Vec<f32>)> {
    let slots: Vec<Slot> = contexts
        .iter()
        .map(|_| model.open().expect("a cache"))
        .collect();
    let trees: Vec<Nodes> = contexts
        .iter()
        .map(|_| {
            let count = 1 + noise.below(14);
            noise.nodes(count)
        })
        .collect();
    for (slot, context) in slots.iter().zip(contexts) {
        if *context > 0 {
            feed(model, *slot, &noise.tokens(*context));
        }
    }
    let mut results = Vec::new();
    let mut whole: Vec<Vec<Vec<f32>>> = Vec::new();
    for ((slot, tree), context) in slots.iter().zip(&trees).zip(contexts) {
        let fork = model.fork(*slot, *context).expect("a fork");
        let want: Vec<usize> = (0..tree.len()).collect();
        let logits = model.forward(&rows(fork, tree), &want).expect("it runs");
        whole.push(want.iter().map(|row| logits.row(*row).to_vec()).collect());
        model.close(fork);
    }
    let mut grown = vec![0; slots.len()];
    while grown
        .iter()
        .zip(&trees)
        .any(|(grown, tree)| *grown < tree.len())
    {
        let (mut batch, mut places) = (Vec::new(), Vec::new());
        for (at, tree) in trees.iter().enumerate() {
            let count = noise.below(4).min(tree.len() - grown[at]);
            let next = grown[at]..grown[at] + count;
            batch.extend(rows(slots[at], &tree[next.clone()]));
            places.extend(next.map(|node| (at, node)));
            grown[at] += count;
        }
        if batch.is_empty() {
            continue;
        }
        let want: Vec<usize> = (0..batch.len()).collect();
        let logits = model.grow(&batch, &want).expect("it runs");
        for (row, (at, node)) in places.into_iter().enumerate() {
            results.push((logits.row(row).to_vec(), whole[at][node].clone()));
        }
    }
    for (slot, context) in slots.iter().zip(contexts) {
        assert_eq!(model.cached(*slot), *context, "nothing is held for good");
        model.close(*slot);
    }
    results
}

/// Contexts around the places where the cache's chunks meet.
const CONTEXTS: [[usize; 3]; 4] = [[0, 5, 20], [120, 3, 0], [127, 128, 129], [250, 14, 257]];

#[test]
fn growing_row_by_row_gives_the_bits_of_one_forward() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma3"] {
        let mut model = tiny(architecture);
        let mut noise = Noise(3);
        for contexts in CONTEXTS.iter().cycle().take(16) {
            for (grown, whole) in both_ways(&mut *model, &mut noise, contexts) {
                assert!(bits(&grown) == bits(&whole), "{architecture}, {contexts:?}");
            }
        }
    }
}

#[test]
fn the_reference_grows_within_its_tolerance() {
    for architecture in ["llama", "gemma3"] {
        let mut model = reference(architecture);
        let mut noise = Noise(4);
        for contexts in CONTEXTS {
            for (grown, whole) in both_ways(&mut *model, &mut noise, &contexts) {
                let distance = farthest(&grown, &whole);
                assert!(distance < 1e-3, "{architecture}, {contexts:?}: {distance}");
            }
        }
    }
}

/// Grows a tree, closes it in one way, and goes on.
fn goes_on_after(close: impl Fn(&mut dyn LanguageModel, Slot, usize, &Nodes) -> Vec<TokenId>) {
    let mut model = tiny("llama");
    let mut noise = Noise(8);
    for context in [1, 17, 126] {
        let slot = model.open().expect("a cache");
        let mut tokens = noise.tokens(context);
        feed(&mut *model, slot, &tokens);
        let tree = noise.nodes(9);
        model.grow(&rows(slot, &tree[..4]), &[]).expect("it runs");
        model
            .grow(&rows(slot, &tree[4..]), &[8 - 4])
            .expect("it runs");
        tokens.extend(close(&mut *model, slot, context, &tree));
        assert_eq!(model.cached(slot), tokens.len());
        let next = noise.tokens(3);
        tokens.extend(&next);
        let got = feed(&mut *model, slot, &next);
        let expected = from_scratch(&mut *model, &tokens, None);
        assert!(bits(&got) == bits(&expected), "after {context} tokens");
    }
}

#[test]
fn a_kept_path_is_a_chain() {
    goes_on_after(|model, slot, context, tree| {
        let path = path(tree, 8);
        model.keep(slot, context, &path).expect("it keeps");
        path.iter().map(|node| tree[*node].0).collect()
    });
}

#[test]
fn a_tree_that_is_cut_off_leaves_nothing() {
    goes_on_after(|model, slot, context, _| {
        model.truncate(slot, context);
        Vec::new()
    });
}

#[test]
fn a_forward_ignores_what_grew() {
    goes_on_after(|model, slot, _, _| {
        feed(model, slot, &[7, 8]);
        vec![7, 8]
    });
}

#[test]
fn a_closed_slot_can_be_opened_again() {
    let mut model = tiny("llama");
    let mut noise = Noise(2);
    for _ in 0..3 {
        let slot = model.open().expect("a cache");
        model
            .grow(&rows(slot, &noise.nodes(5)), &[])
            .expect("it runs");
        model.close(slot);
        let slot = model.open().expect("a cache");
        let got = feed(&mut *model, slot, &[1, 2, 3]);
        assert_eq!(got, from_scratch(&mut *model, &[1, 2, 3], None));
        model.close(slot);
    }
}
