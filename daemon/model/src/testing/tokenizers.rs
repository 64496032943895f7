//! Small tokenizers, and files opened from memory.

use std::io::Write;

use crate::gguf::{Gguf, GgufError};
use crate::testing::GgufWriter;
use crate::tokenizer::byte_alphabet;

/// Starts a file with a byte-level BPE tokenizer: tokens 0 to 255 are the bytes, token 256 is `he`, and control
/// tokens follow from 257 on.
#[must_use]
pub fn byte_tokenizer(controls: &[&str]) -> GgufWriter {
    let mut tokens: Vec<String> = byte_alphabet().map(String::from).collect();
    tokens.push("he".to_owned());
    tokens.extend(controls.iter().map(|&control| control.to_owned()));
    let types: Vec<i32> = (0..tokens.len())
        .map(|id| if id < 257 { 1 } else { 3 })
        .collect();
    GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings("tokenizer.ggml.merges", &["h e"])
}

/// Starts a file with a SentencePiece tokenizer: `<unk>`, `<s>`, `</s>`, the 256 bytes, then pieces with their scores.
#[must_use]
pub fn sentencepiece_tokenizer(pieces: &[(&str, f32)]) -> GgufWriter {
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(String::from).to_vec();
    tokens.extend((0..=u8::MAX).map(|byte| format!("<0x{byte:02X}>")));
    tokens.extend(pieces.iter().map(|(piece, _)| (*piece).to_owned()));
    let kind = |id| match id {
        0 => 2,
        1 | 2 => 3,
        3..259 => 6,
        _ => 1,
    };
    let types: Vec<i32> = (0..tokens.len()).map(kind).collect();
    let mut scores = vec![0.0; 259];
    scores.extend(pieces.iter().map(|(_, score)| score));
    GgufWriter::new()
        .str("tokenizer.ggml.model", "llama")
        .strings("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &types)
        .f32s("tokenizer.ggml.scores", &scores)
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.eos_token_id", 2)
        .u32("tokenizer.ggml.unknown_token_id", 0)
}

/// Opens the bytes of a model file.
///
/// # Errors
/// As [`Gguf::open`].
///
/// # Panics
/// When no temporary file can be written.
pub fn try_open(bytes: &[u8]) -> Result<Gguf, GgufError> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for a small file");
    Gguf::open(file.path())
}

/// Opens the bytes of a valid model file.
///
/// # Panics
/// When it is not valid.
#[must_use]
pub fn open(bytes: &[u8]) -> Gguf {
    try_open(bytes).expect("a valid file")
}
