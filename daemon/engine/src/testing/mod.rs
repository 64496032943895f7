//! Parts for tests, behind the feature `testing`: files to read that no one has to download.

mod gguf_writer;
mod tokenizers;

pub use gguf_writer::GgufWriter;
pub use tokenizers::{byte_tokenizer, open, sentencepiece_tokenizer, try_open};
