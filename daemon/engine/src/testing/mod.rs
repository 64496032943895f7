//! Parts for tests, behind the feature `testing`: files to read that no one has to download.

mod gguf_writer;
pub mod tiny;
mod tokenizers;

pub use gguf_writer::GgufWriter;
pub use tiny::TinyModel;
pub use tokenizers::{byte_tokenizer, open, sentencepiece_tokenizer, try_open};
