//! Quantized weight matrices in the layout of the running CPU, and their products with a few rows of activations.
//!
//! Each weight is loaded and unpacked once for up to eight rows, so that a step of a few rows costs hardly more than a
//! step of one. The bits of a row's result depend on that row and the weights alone: not on how many rows share the
//! call, on tile ranges, or on threads. They may differ between instruction sets.
//!
//! The way of a matrix: `format` names the formats, `block` reads GGUF blocks, `layout` places their fields, and `matrix` packs
//! them and multiplies. It does so with the kernel of `product` over the operations of `simd`, which `isa` chooses. Activations
//! come from `rows`, and results go to `out`. Rare formats go through `float`, which multiplies with what `decode` reads;
//! `codebook` has the values of formats whose bits are no numbers. `check` holds all of it against sums in f64, on the machine
//! at hand. Knows nothing of models, files or threads.

mod block;
mod bytes;
pub mod check;
mod codebook;
mod decode;
mod float;
mod format;
mod isa;
mod lattice;
mod layout;
mod matrix;
mod out;
mod product;
mod rows;
mod simd;
mod size;
mod unpack;

pub use bytes::SharedBytes;
pub use format::Format;
pub use isa::{Isa, isa};
pub use layout::LAYOUT_VERSION;
pub use matrix::PackedMatrix;
pub use out::OutView;
pub use rows::{QuantizedRows, RowWriter};
pub use size::PackError;
