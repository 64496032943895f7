//! Exit adapters that do not fit, and what one costs.

use tandem_model::model::{Exit, LanguageModel};
use tandem_model::testing::TinyModel;

use super::world::*;

fn refusal(adapter: &[u8], architecture: &'static str) -> String {
    let mut model = tiny(architecture);
    let refused = model.attach_exit(&open(adapter), &mut |_| {});
    assert!(model.exit_adapter().is_none());
    refused.expect_err("it does not fit").to_string()
}

#[test]
fn an_adapter_for_another_target_is_refused_with_both_numbers() {
    let cases = [
        (
            TinyModel { width: 64, ..TINY },
            "width is 64 and the target's is 32",
        ),
        (
            TinyModel { heads: 8, ..TINY },
            "number of query heads is 8 and the target's is 4",
        ),
        (
            TinyModel {
                kv_heads: 1,
                ..TINY
            },
            "number of key heads is 1 and the target's is 2",
        ),
    ];
    for (made_for, expected) in cases {
        let why = refusal(&made_for.exit_adapter(EXIT), "llama");
        assert!(why.contains(expected), "{why}");
    }
    for layers in [0, 4, 30] {
        let why = refusal(&TINY.exit_adapter(layers), "llama");
        assert!(
            why.contains(&format!("4 layers cannot be left after {layers};")),
            "{why}"
        );
    }
    let why = refusal(&TINY.gguf(), "llama");
    assert!(
        why.contains("`llama`") && why.contains("`llama-exit`"),
        "{why}"
    );
    let why = refusal(&TINY.exit_adapter(EXIT), "qwen3");
    assert!(why.contains("`qwen3`"), "{why}");
}

#[test]
fn a_damaged_adapter_is_refused_by_the_name_of_its_tensor() {
    let mut bytes = TINY.exit_adapter(EXIT);
    let name = b"blk.0.attn_v.weight";
    let at = bytes.windows(name.len()).position(|window| window == name);
    bytes[at.expect("it is there") + 11] = b'x';
    let why = refusal(&bytes, "llama");
    assert!(why.contains("attn_v.weight"), "{why}");
}

#[test]
fn an_adapter_costs_its_weights_and_one_layer_of_cache() {
    let plain = tiny("llama");
    let mut model = with_adapter(tiny("llama"));
    let adapter = |model: &dyn LanguageModel| model.exit_adapter().expect("attached");
    let weights: u64 = open(&TINY.exit_adapter(EXIT))
        .tensors()
        .iter()
        .map(|t| t.bytes)
        .sum();
    assert_eq!(adapter(&*model).layers, EXIT);
    assert_eq!(adapter(&*model).weight_bytes, weights);
    let position = model.cache_bytes_per_position();
    assert_eq!(position, plain.cache_bytes_per_position());
    assert_eq!(adapter(&*model).cache_bytes_per_position, position / 4);
    assert_eq!((model.cache_bytes(), adapter(&*model).cache_bytes), (0, 0));
    let slot = model.open().expect("a cache");
    feed(&mut *model, slot, &[1, 2, 3]);
    assert_eq!(adapter(&*model).cache_bytes, model.cache_bytes() / 4);
    // Half of the layers, the adapter's block and the head.
    let cost = model.exit_cost(Exit::Adapter).expect("attached");
    let without = model.exit_cost(Exit::Layer(EXIT)).expect("a layer");
    assert!(
        without > 0.5 && without < cost && cost < 1.0,
        "{without} and {cost}"
    );

    // Dropped in mid-draft, it takes nothing along.
    model
        .early(&rows(slot, &[(4, None)]), &[0], Exit::Adapter)
        .expect("it runs");
    model.detach_exit();
    assert!(model.exit_adapter().is_none());
    let got = feed(&mut *model, slot, &[4, 5]);
    assert_eq!(got, from_scratch(&mut *model, &[1, 2, 3, 4, 5], None));
}
