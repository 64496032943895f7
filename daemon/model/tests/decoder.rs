//! The decoder against candle's own llama, and its caches against themselves, on the real models: by the reference backend, on
//! the CPU, where both compute alike. `backend` and `device` hold devices against it.

mod common;

use candle_core::quantized::gguf_file::{self, Content};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use tandem_model::TokenId;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel, Row, Slot};

/// "Speculative decoding is a technique that" and so on; any ordinary ids do.
const TOKENS: [TokenId; 24] = [
    1, 4093, 198, 3263, 418, 260, 3575, 282, 253, 6130, 288, 2, 198, 1, 520, 9531, 198, 504, 3575,
    282, 253, 6130, 314, 260,
];

fn decoder(path: std::path::PathBuf) -> Decoder<CandleBackend> {
    let gguf = Gguf::open(path).expect("a sound file");
    Decoder::load(CandleBackend::cpu(), &gguf, 256, &mut |_| {}).expect("it loads")
}

fn chain(slot: Slot, tokens: &[TokenId]) -> Vec<Row> {
    tokens
        .iter()
        .enumerate()
        .map(|(i, token)| Row {
            slot,
            token: *token,
            parent: i.checked_sub(1),
        })
        .collect()
}

/// Feeds a chain and returns the logits of its last row.
fn feed(decoder: &mut Decoder<CandleBackend>, slot: Slot, tokens: &[TokenId]) -> Vec<f32> {
    let logits = decoder
        .forward(&chain(slot, tokens), &[tokens.len() - 1])
        .expect("it runs");
    logits.row(0).to_vec()
}

fn farthest(a: &[f32], b: &[f32]) -> f32 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max)
}

/// Root mean square of the differences.
fn noise(a: &[f32], b: &[f32]) -> f32 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
    (squares / a.len() as f32).sqrt()
}

/// Compares our logits with candle's own llama on a prompt and two tokens that follow; returns the worst noise.
fn against_candle(path: &std::path::Path) -> f32 {
    let mut file = std::fs::File::open(path).expect("the file is there");
    let content = Content::read(&mut file).expect("candle reads it");
    let mut peer =
        ModelWeights::from_gguf(content, &mut file, &Device::Cpu).expect("candle loads it");
    let mut ours = decoder(path.to_owned());
    let slot = ours.open().expect("a cache");
    let mut worst = 0.0f32;
    for (at, tokens) in [
        (0, &TOKENS[..20]),
        (20, &TOKENS[20..21]),
        (21, &TOKENS[21..22]),
    ] {
        let input = Tensor::new(tokens, &Device::Cpu)
            .and_then(|t| t.unsqueeze(0))
            .expect("a tensor");
        let expected = peer
            .forward(&input, at)
            .and_then(|l| l.flatten_all()?.to_vec1::<f32>());
        let got = feed(&mut ours, slot, tokens);
        worst = worst.max(noise(&got, &expected.expect("candle runs")));
    }
    worst
}

/// Products on quantized weights round activations to 8 bits. A rounding that falls the other way, after attention
/// sums in another order, is noise that grows through thirty layers; logits of this model spread over 40.
#[test]
fn quantized_logits_agree_with_candles_own_llama_but_for_rounding() {
    assert!(against_candle(&common::default_target()) < 0.5);
    assert!(against_candle(&common::default_draft()) < 0.2);
}

/// Without quantized weights nothing is rounded, and the two agree closely.
#[test]
fn exact_logits_agree_with_candles_own_llama() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("draft-f32.gguf");
    widen_to_f32(&common::default_draft(), &path);
    let noise = against_candle(&path);
    assert!(noise < 1e-3, "{noise}");
}

/// Writes the same model with all weights as f32.
fn widen_to_f32(from: &std::path::Path, to: &std::path::Path) {
    let mut file = std::fs::File::open(from).expect("the file is there");
    let content = Content::read(&mut file).expect("candle reads it");
    let tensors: Vec<(String, QTensor)> = content
        .tensor_infos
        .keys()
        .map(|name| {
            let tensor = content
                .tensor(&mut file, name, &Device::Cpu)
                .expect("a tensor");
            let plain = tensor.dequantize(&Device::Cpu).expect("numbers");
            (
                name.clone(),
                QTensor::quantize(&plain, GgmlDType::F32).expect("f32"),
            )
        })
        .collect();
    let metadata: Vec<_> = content
        .metadata
        .iter()
        .map(|(key, value)| (key.as_str(), value))
        .collect();
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(name, tensor)| (name.as_str(), tensor))
        .collect();
    let mut out = std::fs::File::create(to).expect("a file");
    gguf_file::write(&mut out, &metadata, &tensors).expect("candle writes it");
}

#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let mut ours = decoder(common::default_target());
    let [alone, beside, other] = [0; 3].map(|_| ours.open().expect("a cache"));
    let mut expected = Vec::new();
    for token in TOKENS {
        expected = feed(&mut ours, alone, &[token]);
    }
    feed(&mut ours, beside, &TOKENS[..5]);
    let mut rows = chain(other, &TOKENS[3..12]);
    rows.extend(chain(beside, &TOKENS[5..]));
    let want = [rows.len() - 1, 2];
    let together = ours.forward(&rows, &want).expect("it runs");
    assert_eq!(together.row(0), expected);
    let third = together.row(1).to_vec();
    let fresh = ours.open().expect("a cache");
    assert_eq!(third, feed(&mut ours, fresh, &TOKENS[3..6]));
}

#[test]
fn what_remains_of_a_tree_is_a_chain() {
    let mut ours = decoder(common::default_target());
    let [tree, straight] = [0; 2].map(|_| ours.open().expect("a cache"));
    feed(&mut ours, tree, &TOKENS[..6]);
    feed(&mut ours, straight, &TOKENS[..6]);
    // Two branches under the sixth token: a wrong one, and tokens 6 and 7 with a wrong sibling between.
    let row = |token, parent| Row {
        slot: tree,
        token,
        parent,
    };
    let rows = [
        row(99, None),
        row(TOKENS[6], None),
        row(98, Some(1)),
        row(TOKENS[7], Some(1)),
    ];
    let branch = ours.forward(&rows, &[3]).expect("it runs");
    let branch = branch.row(0).to_vec();
    let line = feed(&mut ours, straight, &TOKENS[6..8]);
    assert!(farthest(&branch, &line) < 1e-3);
    assert_eq!(ours.cached(tree), 10);
    ours.keep(tree, 6, &[1, 3]).expect("it keeps");
    assert_eq!(ours.cached(tree), 8);
    let after_tree = feed(&mut ours, tree, &TOKENS[8..12]);
    let after_line = feed(&mut ours, straight, &TOKENS[8..12]);
    assert!(farthest(&after_tree, &after_line) < 1e-3);
}

#[test]
fn truncating_and_forking_forget_exactly_the_rest() {
    let mut ours = decoder(common::default_target());
    let slot = ours.open().expect("a cache");
    feed(&mut ours, slot, &TOKENS[..10]);
    let fork = ours.fork(slot, 7).expect("a fork");
    feed(&mut ours, slot, &[5, 6, 7]);
    ours.truncate(slot, 10);
    let straight = ours.open().expect("a cache");
    let expected = feed(&mut ours, straight, &TOKENS[..14]);
    assert_eq!(feed(&mut ours, slot, &TOKENS[10..14]), expected);
    assert_eq!(feed(&mut ours, fork, &TOKENS[7..14]), expected);
    let bytes = ours.cache_bytes();
    assert_eq!(bytes, 3 * 256 * ours.cache_bytes_per_position());
    ours.close(fork);
    assert_eq!(ours.cache_bytes(), bytes / 3 * 2);
}

#[test]
fn out_of_range_tokens_and_positions_are_refused_and_change_nothing() {
    let mut ours = decoder(common::default_target());
    let slot = ours.open().expect("a cache");
    feed(&mut ours, slot, &TOKENS[..4]);
    ours.forward(&chain(slot, &[1, u32::MAX]), &[1])
        .expect_err("no such token");
    ours.forward(&chain(slot, &[1; 253]), &[0])
        .expect_err("no such position");
    assert_eq!(ours.cached(slot), 4);
}
