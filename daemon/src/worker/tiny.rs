//! A real model small enough to be written and run by every test: one layer, random weights, one token per byte.

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{Device, LoadOptions, ModelPair, PairFiles};
use tandem_engine::testing::GgufWriter;

/// Tokens: one per byte and the end of text.
pub(super) const VOCABULARY: usize = 257;
/// Most tokens of prompt and output together.
pub(super) const CONTEXT: usize = 2048;

const WIDTH: usize = 32;
const INNER: usize = 64;
const HEADS: u32 = 4;
/// The number of the f32 format in GGUF.
const F32: u32 = 0;

/// Loads the model for up to `max_sequences` requests at once.
pub(super) fn load() -> ModelPair {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("tiny.gguf");
    std::fs::write(&target, file()).expect("written");
    let options = LoadOptions {
        context_length: None,
        budget: 1 << 30,
        max_step_rows: 64,
        device: Device::Cpu,
    };
    let files = PairFiles {
        target,
        draft: None,
    };
    ModelPair::load(&files, &options, &mut |_| {}).expect("a sound file")
}

/// Makes an engine of it for up to `max_sequences` requests at once.
pub(super) fn engine(pair: ModelPair, max_sequences: usize) -> Engine {
    let options = EngineOptions {
        max_sequences,
        max_step_rows: 64,
        cache_budget: 1 << 30,
    };
    Engine::new(pair, options)
}

fn file() -> Vec<u8> {
    let mut noise = Noise(1);
    let mut writer = GgufWriter::new()
        .str("general.architecture", "llama")
        .str("general.name", "tiny")
        .u32("llama.block_count", 1)
        .u32("llama.context_length", CONTEXT as u32)
        .u32("llama.embedding_length", WIDTH as u32)
        .u32("llama.feed_forward_length", INNER as u32)
        .u32("llama.attention.head_count", HEADS)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "smollm")
        .strings("tokenizer.ggml.tokens", &tokens())
        .strings::<&str>("tokenizer.ggml.merges", &[])
        .u32("tokenizer.ggml.eos_token_id", 256);
    for (name, shape) in [
        ("token_embd.weight", vec![WIDTH, VOCABULARY]),
        ("output_norm.weight", vec![WIDTH]),
        ("blk.0.attn_norm.weight", vec![WIDTH]),
        ("blk.0.attn_q.weight", vec![WIDTH, WIDTH]),
        ("blk.0.attn_k.weight", vec![WIDTH, WIDTH]),
        ("blk.0.attn_v.weight", vec![WIDTH, WIDTH]),
        ("blk.0.attn_output.weight", vec![WIDTH, WIDTH]),
        ("blk.0.ffn_norm.weight", vec![WIDTH]),
        ("blk.0.ffn_gate.weight", vec![WIDTH, INNER]),
        ("blk.0.ffn_up.weight", vec![WIDTH, INNER]),
        ("blk.0.ffn_down.weight", vec![INNER, WIDTH]),
    ] {
        let data: Vec<u8> = (0..shape.iter().product())
            .flat_map(|_| noise.next().to_le_bytes())
            .collect();
        let shape: Vec<u64> = shape.into_iter().map(|extent| extent as u64).collect();
        writer = writer.raw_tensor(name, &shape, F32, &data);
    }
    writer.finish()
}

/// Spells each byte as byte-level BPE does: printable Latin-1 as itself, the others from U+0100 on.
fn tokens() -> Vec<String> {
    let mut others = 0x100u32..;
    let mut spell = |byte: u8| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => others
            .next()
            .and_then(char::from_u32)
            .expect("68 characters exist there"),
    };
    let bytes = (0..=u8::MAX).map(|byte| spell(byte).to_string());
    bytes.chain(["<|endoftext|>".to_owned()]).collect()
}

/// Numbers in [-0.5, 0.5) that are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1u32 << 24) as f32 - 0.5
    }
}
