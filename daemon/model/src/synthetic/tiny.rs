//! Real models small enough to be written and run by every test and check: random weights, one token per byte.

use tandem_kernels::Format;
use tandem_kernels::check::blocks::{Random, random_blocks};

use super::GgufWriter;

/// Tokens: one per byte and the end of text.
pub const VOCABULARY: usize = 257;
/// The end of text.
pub const END_OF_TEXT: u32 = 256;
/// The number of the f32 format in GGUF.
const F32: u32 = 0;

/// Shape and seed of a tiny model.
#[derive(Clone, Copy, Debug)]
pub struct TinyModel {
    /// `llama`, `qwen2`, `qwen3` or `gemma3`.
    pub architecture: &'static str,
    /// Decoder layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the MLP.
    pub inner: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Most tokens of prompt and output together.
    pub context_length: usize,
    /// Chooses the weights.
    pub seed: u64,
    /// Weights lie within this distance of 0; larger ones make surer models.
    pub spread: f32,
}

impl Default for TinyModel {
    fn default() -> Self {
        Self {
            architecture: "llama",
            layers: 2,
            width: 32,
            inner: 64,
            heads: 4,
            kv_heads: 2,
            context_length: 2048,
            seed: 1,
            spread: 0.5,
        }
    }
}

impl TinyModel {
    /// Writes the model as a GGUF file.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn gguf(&self) -> Vec<u8> {
        self.writer().finish()
    }

    /// Returns the model's file before it is written, to be changed.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn writer(&self) -> GgufWriter {
        self.fill(self.header(), self.tensors())
    }

    /// Writes the model with an LM head of its own, of random blocks of `format`, whose block has to divide the width.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn gguf_with_head(&self, format: Format) -> Vec<u8> {
        let weights = self.width * VOCABULARY;
        let head = random_blocks(format, weights, &mut Random(self.seed));
        let shape = [self.width as u64, VOCABULARY as u64];
        self.fill(self.header(), self.tensors())
            .raw_tensor("output.weight", &shape, format.number(), &head)
            .finish()
    }

    /// Writes the model with tensors of the caller's, who is told a name and a shape, innermost extent first, and returns
    /// a format and bytes. The embedding has `vocabulary` rows, which may be more than there are tokens.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn gguf_of(
        &self,
        vocabulary: usize,
        mut tensor: impl FnMut(&str, &[usize]) -> (Format, Vec<u8>),
    ) -> Vec<u8> {
        let mut writer = self.header();
        for (name, mut shape) in self.tensors() {
            if name == "token_embd.weight" {
                shape[1] = vocabulary;
            }
            let (format, bytes) = tensor(&name, &shape);
            let shape: Vec<u64> = shape.into_iter().map(|extent| extent as u64).collect();
            writer = writer.raw_tensor(&name, &shape, format.number(), &bytes);
        }
        writer.finish()
    }

    /// Starts a file with everything but tensors.
    fn header(&self) -> GgufWriter {
        let arch = self.architecture;
        let key = |name: &str| format!("{arch}.{name}");
        let size = |value: usize| u32::try_from(value).expect("tiny");
        let head_dim = self.width / self.heads;
        let writer = match arch {
            "gemma3" => GgufWriter::new().u32(&key("attention.sliding_window"), 16),
            _ => GgufWriter::new(),
        };
        writer
            .str("general.architecture", arch)
            .str("general.name", "tiny")
            .u32(&key("block_count"), size(self.layers))
            .u32(&key("context_length"), size(self.context_length))
            .u32(&key("embedding_length"), size(self.width))
            .u32(&key("feed_forward_length"), size(self.inner))
            .u32(&key("attention.head_count"), size(self.heads))
            .u32(&key("attention.head_count_kv"), size(self.kv_heads))
            .u32(&key("attention.key_length"), size(head_dim))
            .u32(&key("attention.value_length"), size(head_dim))
            .u32(&key("rope.dimension_count"), size(head_dim))
            .f32(&key("rope.freq_base"), 10_000.0)
            .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
            .str("tokenizer.ggml.model", "gpt2")
            .str("tokenizer.ggml.pre", "smollm")
            .strings("tokenizer.ggml.tokens", &tokens())
            .strings::<&str>("tokenizer.ggml.merges", &[])
            .u32("tokenizer.ggml.eos_token_id", END_OF_TEXT)
    }

    /// Writes an exit adapter that takes over after `layers` layers, with random weights.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn exit_adapter(&self, layers: usize) -> Vec<u8> {
        self.exit_writer(layers).finish()
    }

    /// Returns the file of an exit adapter before it is written, to be changed.
    ///
    /// # Panics
    /// If an extent does not fit 32 bits.
    #[must_use]
    pub fn exit_writer(&self, layers: usize) -> GgufWriter {
        let key = |name: &str| format!("llama-exit.{name}");
        let size = |value: usize| u32::try_from(value).expect("tiny");
        let writer = GgufWriter::new()
            .str("general.architecture", "llama-exit")
            .str("general.name", "tiny exit")
            .u32(&key("exit_layer"), size(layers))
            .u32(&key("block_count"), 1)
            .u32(&key("embedding_length"), size(self.width))
            .u32(&key("feed_forward_length"), size(self.inner))
            .u32(&key("attention.head_count"), size(self.heads))
            .u32(&key("attention.head_count_kv"), size(self.kv_heads))
            .u32(&key("rope.dimension_count"), size(self.width / self.heads))
            .f32(&key("rope.freq_base"), 10_000.0)
            .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5);
        let block = Self { layers: 1, ..*self };
        let mut tensors = block.tensors();
        tensors.retain(|(name, _)| name != "token_embd.weight");
        self.fill(writer, tensors)
    }

    /// Adds random weights.
    fn fill(&self, mut writer: GgufWriter, tensors: Vec<(String, Vec<usize>)>) -> GgufWriter {
        let mut noise = Noise(self.seed);
        for (name, shape) in tensors {
            // Norms and biases scale whole rows: near 1 and near 0, as in trained models.
            let (middle, spread) = match (name.ends_with("norm.weight"), name.ends_with(".bias")) {
                (true, _) => (1.0, 0.1),
                (_, true) => (0.0, 0.1),
                _ => (0.0, self.spread),
            };
            let data: Vec<u8> = (0..shape.iter().product())
                .flat_map(|_| (middle + 2.0 * spread * noise.next()).to_le_bytes())
                .collect();
            let shape: Vec<u64> = shape.into_iter().map(|extent| extent as u64).collect();
            writer = writer.raw_tensor(&name, &shape, F32, &data);
        }
        writer
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (width, inner) = (self.width, self.inner);
        let head_dim = width / self.heads;
        let keys = self.kv_heads * head_dim;
        let mut tensors = vec![
            ("token_embd.weight".to_owned(), vec![width, VOCABULARY]),
            ("output_norm.weight".to_owned(), vec![width]),
        ];
        for layer in 0..self.layers {
            let mut add = |name: &str, shape: &[usize]| {
                tensors.push((format!("blk.{layer}.{name}"), shape.to_vec()));
            };
            add("attn_norm.weight", &[width]);
            add("attn_q.weight", &[width, width]);
            add("attn_k.weight", &[width, keys]);
            add("attn_v.weight", &[width, keys]);
            add("attn_output.weight", &[width, width]);
            add("ffn_norm.weight", &[width]);
            add("ffn_gate.weight", &[width, inner]);
            add("ffn_up.weight", &[width, inner]);
            add("ffn_down.weight", &[inner, width]);
            if self.architecture == "qwen2" {
                add("attn_q.bias", &[width]);
                add("attn_k.bias", &[keys]);
                add("attn_v.bias", &[keys]);
            }
            if matches!(self.architecture, "qwen3" | "gemma3") {
                add("attn_q_norm.weight", &[head_dim]);
                add("attn_k_norm.weight", &[head_dim]);
            }
            if self.architecture == "gemma3" {
                add("post_attention_norm.weight", &[width]);
                add("post_ffw_norm.weight", &[width]);
            }
        }
        tensors
    }
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
