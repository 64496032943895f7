//! Parts for tests, behind the feature `testing`: files to read that no one has to download.

mod gguf_writer;

pub use gguf_writer::GgufWriter;
