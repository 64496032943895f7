//! Parts for tests, behind the feature `testing`: files to read that no one has to download, and what a model says of rows.

mod formats;
mod invariance;
mod rows;
mod tokenizers;

pub use crate::synthetic::{GgufWriter, TinyModel, tiny};
pub use formats::{Weights, in_formats, random_matrix};
pub use invariance::invariance;
pub use rows::{chain, forward, leading, load};
pub use tandem_kernels::Format;
pub use tandem_kernels::check::blocks::Random;
pub use tokenizers::{byte_tokenizer, open, sentencepiece_tokenizer, try_open};
