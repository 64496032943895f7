//! Each key and each tensor of a model of each architecture, changed and dropped one at a time: what comes out is another
//! model, or a refusal that names it, or the key is in a list here with the reason why nothing changes.

use super::{ARCHITECTURES, differ, logits, tiny};
use crate::model::{ExitConfig, ModelConfig};
use crate::testing::{GgufWriter, open};

/// Keys without bearing on logits: (key, whether it is dropped or changed, why). `None` stands for both.
const WITHOUT: &[(&str, Option<&str>, &str)] = &[
    ("general.name", None, "a name"),
    (
        "context_length",
        Some("changed"),
        "how far a model reaches, not what it computes within",
    ),
    (
        "attention.head_count_kv",
        Some("dropped"),
        "where it is that of the queries",
    ),
    (
        "feed_forward_length",
        Some("dropped"),
        "the tensors say it too",
    ),
    (
        "attention.key_length",
        Some("dropped"),
        "the width divided by the heads, by the format's rule",
    ),
    (
        "attention.value_length",
        Some("dropped"),
        "that of the keys, by the format's rule",
    ),
    (
        "rope.dimension_count",
        Some("dropped"),
        "the whole head, by the format's rule",
    ),
    (
        "rope.freq_base",
        Some("dropped"),
        "10000, by the format's rule",
    ),
    // What tokens mean is not what a model computes of them: the tokenizer's own tests look at these.
    ("tokenizer.ggml.model", None, "of the tokenizer"),
    ("tokenizer.ggml.pre", None, "of the tokenizer"),
    ("tokenizer.ggml.tokens", None, "of the tokenizer"),
    ("tokenizer.ggml.merges", None, "of the tokenizer"),
    ("tokenizer.ggml.eos_token_id", None, "of the tokenizer"),
];

fn is_listed(architecture: &str, key: &str, how: &str) -> bool {
    let key = key.strip_prefix(&format!("{architecture}.")).unwrap_or(key);
    let mut listed = WITHOUT.iter();
    listed.any(|(listed, which, _)| *listed == key && which.is_none_or(|which| which == how))
}

/// The value made another of its type.
fn changed(kind: u32, value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    match kind {
        // A number twice as large; a float by three halves.
        4 => {
            value = (2 * u32::from_le_bytes(value.try_into().unwrap()))
                .to_le_bytes()
                .into()
        }
        6 => {
            value = (1.5 * f32::from_le_bytes(value.try_into().unwrap()))
                .to_le_bytes()
                .into()
        }
        8 => *value.last_mut().unwrap() ^= 1,
        9 if value.len() > 20 => *value.last_mut().unwrap() ^= 1,
        9 => {}
        other => panic!("type {other}"),
    }
    value
}

/// Whether a changed file is another model or refused by this name.
fn is_told(found: &Result<Vec<f32>, String>, base: &[f32], name: &str) -> bool {
    match found {
        Ok(found) => differ(base, found),
        // A size that others contradict is named by them, and an architecture by its value.
        Err(error) => {
            let named = [
                "contradicts itself",
                "has no tensor",
                "its metadata key",
                "the architecture `",
            ];
            error.contains(name) || named.iter().any(|part| error.contains(part))
        }
    }
}

#[test]
fn every_key_is_honoured_or_named() {
    for architecture in ARCHITECTURES {
        let file = tiny(architecture).writer();
        let base = logits(&file).unwrap();
        let entries: Vec<(String, u32, Vec<u8>)> = file
            .entries()
            .map(|(key, kind, value)| (key.to_owned(), kind, value.to_vec()))
            .collect();
        for (key, kind, value) in entries {
            let dropped = file.clone().without(&key);
            let other = dropped.clone().raw(&key, kind, &changed(kind, &value));
            for (how, file) in [("dropped", dropped), ("changed", other)] {
                let found = logits(&file);
                assert!(
                    is_told(&found, &base, &key) || is_listed(architecture, &key, how),
                    "{key} {how} changes nothing of {architecture}: {:?}",
                    found.err()
                );
            }
        }
    }
}

#[test]
fn every_tensor_is_honoured_or_named() {
    for architecture in ARCHITECTURES {
        let file = tiny(architecture).writer();
        let base = logits(&file).unwrap();
        let names: Vec<String> = file.tensors().map(|(name, ..)| name.to_owned()).collect();
        for name in names {
            let error = logits(&file.clone().without_tensor(&name)).unwrap_err();
            assert!(error.contains(&name), "{architecture}: {error}");
            let other = file.clone().with_changed(&name, |bytes| {
                for float in bytes.as_chunks_mut::<4>().0 {
                    *float = (1.25 * f32::from_le_bytes(*float) + 0.125).to_le_bytes();
                }
            });
            assert!(
                differ(&base, &logits(&other).unwrap()),
                "{name} of {architecture}"
            );
        }
    }
}

/// Tensors that files of these and other architectures have, and that are not computed with here.
#[test]
fn a_tensor_too_many_is_named() {
    let floats = |count: usize| 1f32.to_le_bytes().repeat(count);
    let add = |file: GgufWriter, name: &str| file.raw_tensor(name, &[32], 0, &floats(32));
    for architecture in ARCHITECTURES {
        let file = tiny(architecture).writer();
        for name in [
            "output.bias",
            "output_norm.bias",
            "token_embd_norm.weight",
            "position_embd.weight",
            "blk.0.attn_norm.bias",
            "blk.0.attn_norm_2.weight",
            "blk.0.attn_sinks.weight",
            "blk.0.attn_q.scale",
            "blk.0.attn_q.input_scale",
            "blk.0.attn_q.weight.lora_a",
            "blk.0.attn_output.scale",
            "blk.0.attn_qkv.weight",
            "blk.0.attn_rot_embd.weight",
            "blk.0.ffn_gate.bias",
            "blk.0.ffn_up.bias",
            "blk.0.ffn_down.bias",
            "blk.0.ffn_gate_inp.weight",
            "blk.0.ffn_gate_exps.weight",
            "blk.0.ffn_up_shexp.weight",
            "blk.0.layer_output_scale.weight",
            "blk.9.attn_norm.weight",
            "blk.0.nextn.eh_proj.weight",
            "rope_factors_long.weight",
            "rope_factors_short.weight",
            "v.patch_embd.weight",
            "cls.weight",
            "x",
        ] {
            let error = logits(&add(file.clone(), name)).unwrap_err();
            assert!(
                error.contains(&format!("`{name}`")),
                "{architecture}: {error}"
            );
        }
    }
    // What one architecture has is another's too many.
    let error = logits(&add(tiny("llama").writer(), "blk.0.attn_q_norm.weight")).unwrap_err();
    assert!(error.contains("attn_q_norm"), "{error}");
    let factors = tiny("qwen2")
        .writer()
        .raw_tensor("rope_freqs.weight", &[4], 0, &floats(4));
    assert!(logits(&factors).unwrap_err().contains("rope_freqs.weight"));
}

#[test]
fn an_exit_adapter_is_as_strict() {
    let target = ModelConfig::from_gguf(&open(&tiny("llama").gguf())).unwrap();
    let file = tiny("llama").exit_writer(1);
    let read = |file: &GgufWriter| {
        let config = ExitConfig::from_gguf(&open(&file.finish()), &target);
        config.map(|_| ()).map_err(|error| error.to_string())
    };
    read(&file).unwrap();
    let names: Vec<String> = file.tensors().map(|(name, ..)| name.to_owned()).collect();
    for name in names {
        let error = read(&file.clone().without_tensor(&name)).unwrap_err();
        assert!(error.contains(&name), "{error}");
    }
    let bias = file
        .clone()
        .raw_tensor("blk.0.ffn_down.bias", &[32], 0, &[0; 128]);
    assert!(read(&bias).unwrap_err().contains("blk.0.ffn_down.bias"));
    for key in [
        "llama-exit.rope.scaling.factor",
        "llama-exit.attention.scale",
        "llama-exit.new",
    ] {
        let error = read(&file.clone().f32(key, 2.0)).unwrap_err();
        assert!(error.contains(&format!("`{key}`")), "{error}");
    }
    read(&file.clone().str("llama-exit.target", "tiny")).unwrap();
}

#[test]
fn optional_tensors_change_what_is_computed() {
    let floats = |count: usize| 0.5f32.to_le_bytes().repeat(count);
    let file = tiny("llama").writer();
    let base = logits(&file).unwrap();
    let factors = file
        .clone()
        .raw_tensor("rope_freqs.weight", &[4], 0, &floats(4));
    assert!(differ(&base, &logits(&factors).unwrap()));
    let head = file
        .clone()
        .raw_tensor("output.weight", &[32, 257], 0, &floats(32 * 257));
    assert!(differ(&base, &logits(&head).unwrap()));
    for (part, extent) in [
        ("attn_q", 32),
        ("attn_k", 16),
        ("attn_v", 16),
        ("attn_output", 32),
    ] {
        let bias = |file: GgufWriter, layer: u32| {
            let name = format!("blk.{layer}.{part}.bias");
            // Not all alike, or it would turn away in the softmax.
            let bytes: Vec<u8> = (0..extent)
                .flat_map(|i| (i as f32 % 3.0).to_le_bytes())
                .collect();
            file.raw_tensor(&name, &[extent], 0, &bytes)
        };
        let one = bias(file.clone(), 0);
        let error = logits(&one).unwrap_err();
        assert!(error.contains(&format!("{part}.bias")), "{error}");
        assert!(differ(&base, &logits(&bias(one, 1)).unwrap()), "{part}");
    }
}
