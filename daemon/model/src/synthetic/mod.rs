//! Models made of random numbers, in GGUF files that are written where they are needed: for tests, and for checks of a
//! device that need no model on the disk.

mod gguf_writer;
pub mod tiny;

pub use gguf_writer::GgufWriter;
pub use tiny::TinyModel;
