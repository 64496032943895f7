//! Parts for tests, behind the feature `testing`: files to read that no one has to download.

mod tokenizers;

pub use crate::synthetic::{GgufWriter, TinyModel, tiny};
pub use tokenizers::{byte_tokenizer, open, sentencepiece_tokenizer, try_open};
