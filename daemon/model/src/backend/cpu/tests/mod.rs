//! The backend under the whole decoder, on small models of every architecture and every format.

mod invariance;
mod prepared;
mod rare;

use std::io::Write;
use std::num::NonZeroUsize;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};

use super::CpuBackend;
use crate::TokenId;
use crate::backend::Backend;
use crate::backend::candle::CandleBackend;
use crate::gguf::Gguf;
use crate::model::{Decoder, LanguageModel, Row, Slot};
use crate::testing::GgufWriter;

const WIDTH: usize = 256;
const INNER: usize = 512;
const VOCABULARY: usize = 90;
const LAYERS: usize = 2;
const HEADS: usize = 8;
const KV_HEADS: usize = 2;
/// All that the kernels know.
const FORMATS: [GgmlDType; 13] = [
    GgmlDType::F32,
    GgmlDType::F16,
    GgmlDType::BF16,
    GgmlDType::Q4_0,
    GgmlDType::Q4_1,
    GgmlDType::Q5_0,
    GgmlDType::Q5_1,
    GgmlDType::Q8_0,
    GgmlDType::Q2K,
    GgmlDType::Q3K,
    GgmlDType::Q4K,
    GgmlDType::Q5K,
    GgmlDType::Q6K,
];

/// A small model with weights that depend on their place alone, quantized by candle.
fn model(architecture: &str, format: GgmlDType) -> Gguf {
    model_with(architecture, |file, name, values| {
        file.tensor(name, values, format).expect("it quantizes")
    })
}

/// A small model; `matrix` adds the matrices, given what they should be near.
fn model_with(
    architecture: &str,
    mut matrix: impl FnMut(GgufWriter, &str, &Tensor) -> GgufWriter,
) -> Gguf {
    let key = |name: &str| format!("{architecture}.{name}");
    let mut file = GgufWriter::new()
        .str("general.architecture", architecture)
        .u32(&key("block_count"), LAYERS as u32)
        .u32(&key("embedding_length"), WIDTH as u32)
        .u32(&key("context_length"), 512)
        .u32(&key("attention.head_count"), HEADS as u32)
        .u32(&key("attention.head_count_kv"), KV_HEADS as u32)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5);
    // Which layers of a qwen have a window is in no key.
    if !architecture.starts_with("qwen") {
        file = file.u32(&key("attention.sliding_window"), 7);
    }
    let mut seed = 1_u32;
    let mut tensor = |name: &str, shape: &[usize]| {
        let count: usize = shape.iter().product();
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        // Norms and biases near one and zero, matrices of about unit gain.
        let (middle, spread) = match shape {
            [_, inputs] => (0.0, 1.7 / (*inputs as f32).sqrt()),
            _ if name.ends_with("bias") => (0.0, 0.2),
            _ => (1.0, 0.3),
        };
        let values: Vec<f32> = (0..count).map(|_| middle + spread * next()).collect();
        let values = Tensor::from_vec(values, shape, &Device::Cpu).expect("a tensor");
        let written = std::mem::take(&mut file);
        file = if shape.len() == 1 {
            written
                .tensor(name, &values, GgmlDType::F32)
                .expect("floats")
        } else {
            matrix(written, name, &values)
        };
    };
    tensor("token_embd.weight", &[VOCABULARY, WIDTH]);
    tensor("output_norm.weight", &[WIDTH]);
    let head_dim = WIDTH / HEADS;
    for layer in 0..LAYERS {
        let mut part = |name: &str, shape: &[usize]| {
            tensor(&format!("blk.{layer}.{name}"), shape);
        };
        part("attn_norm.weight", &[WIDTH]);
        part("ffn_norm.weight", &[WIDTH]);
        part("attn_q.weight", &[WIDTH, WIDTH]);
        part("attn_k.weight", &[KV_HEADS * head_dim, WIDTH]);
        part("attn_v.weight", &[KV_HEADS * head_dim, WIDTH]);
        part("attn_output.weight", &[WIDTH, WIDTH]);
        part("ffn_gate.weight", &[INNER, WIDTH]);
        part("ffn_up.weight", &[INNER, WIDTH]);
        part("ffn_down.weight", &[WIDTH, INNER]);
        if architecture == "qwen2" {
            part("attn_q.bias", &[WIDTH]);
            part("attn_k.bias", &[KV_HEADS * head_dim]);
            part("attn_v.bias", &[KV_HEADS * head_dim]);
        }
        if matches!(architecture, "qwen3" | "gemma3") {
            part("attn_q_norm.weight", &[head_dim]);
            part("attn_k_norm.weight", &[head_dim]);
        }
        if architecture == "gemma3" {
            part("post_attention_norm.weight", &[WIDTH]);
            part("post_ffw_norm.weight", &[WIDTH]);
        }
    }
    let mut stored = tempfile::NamedTempFile::new().expect("a file");
    stored.write_all(&file.finish()).expect("it writes");
    Gguf::open(stored.path()).expect("a sound file")
}

fn decoder<B: Backend>(backend: B, gguf: &Gguf) -> (Decoder<B>, Slot) {
    let mut decoder = Decoder::load(backend, gguf, 512, &mut |_| {}).expect("it loads");
    let slot = decoder.open().expect("a cache");
    (decoder, slot)
}

fn cpu(threads: usize) -> CpuBackend {
    CpuBackend::new(NonZeroUsize::new(threads).expect("at least one"))
}

fn tokens(count: usize) -> Vec<TokenId> {
    (0..count)
        .map(|i| (i * 37 % VOCABULARY) as TokenId)
        .collect()
}

/// Feeds a chain and returns the logits of all its rows.
fn feed(model: &mut dyn LanguageModel, slot: Slot, tokens: &[TokenId]) -> Vec<Vec<f32>> {
    let rows: Vec<Row> = tokens
        .iter()
        .enumerate()
        .map(|(i, token)| Row {
            slot,
            token: *token,
            parent: i.checked_sub(1),
        })
        .collect();
    let want: Vec<usize> = (0..rows.len()).collect();
    let logits = model.forward(&rows, &want).expect("it runs");
    want.iter().map(|row| logits.row(*row).to_vec()).collect()
}

/// Root mean square of the differences, and of `b` itself.
fn errors(a: &[Vec<f32>], b: &[Vec<f32>]) -> (f64, f64) {
    let (a, b) = (a.concat(), b.concat());
    let mean = |sum: f64| (sum / a.len() as f64).sqrt();
    let differences = a.iter().zip(&b).map(|(a, b)| f64::from(a - b).powi(2));
    (
        mean(differences.sum()),
        mean(b.iter().map(|b| f64::from(*b).powi(2)).sum()),
    )
}

#[test]
fn exact_weights_give_the_logits_of_the_reference_on_every_architecture() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma3"] {
        let gguf = model(architecture, GgmlDType::F32);
        let (mut reference, slot) = decoder(CandleBackend::cpu(), &gguf);
        let expected = feed(&mut reference, slot, &tokens(20));
        for backend in [cpu(2), CpuBackend::plain()] {
            let (mut ours, slot) = decoder(backend, &gguf);
            let got = feed(&mut ours, slot, &tokens(20));
            let (error, size) = errors(&got, &expected);
            // Keys and values are halves here and floats there: 2⁻¹² of each.
            assert!(error < 1e-3 * size, "{architecture}: {error:e} of {size}");
        }
    }
}

#[test]
fn every_format_agrees_with_the_reference() {
    for format in FORMATS {
        let gguf = model("llama", format);
        let tokens = tokens(23);
        let (mut reference, slot) = decoder(CandleBackend::cpu(), &gguf);
        let reference = feed(&mut reference, slot, &tokens);
        // Both quantize activations to 8 bits, some formats in blocks of other lengths, which strays the most.
        let allowed = match format {
            GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => 1e-3,
            _ => 0.05,
        };
        // What a device is checked against by its user, too.
        for backend in [cpu(1), CpuBackend::plain()] {
            let (mut single, slot) = decoder(backend, &gguf);
            let singly: Vec<Vec<f32>> = tokens
                .iter()
                .flat_map(|token| feed(&mut single, slot, &[*token]))
                .collect();
            let (error, size) = errors(&singly, &reference);
            assert!(error < allowed * size, "{format:?}: {error} of {size}");
        }
    }
}

#[test]
fn heads_too_wide_are_refused() {
    let shape = crate::backend::CacheShape {
        layers: 1,
        kv_heads: 1,
        head_dim: 320,
    };
    let error = cpu(1).cache(shape).expect_err("too wide");
    assert!(error.to_string().contains("320"), "{error}");
}
