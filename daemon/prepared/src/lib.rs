//! Prepared weights: a model's tensors as one CPU's kernels want them, written once and then memory-mapped.
//!
//! A restart maps the file instead of reading and packing the model again. The weights are then clean pages of a file:
//! shared between processes, taken back by the system when memory is short, and no part of the footprint.
//!
//! A file belongs to a [`Key`]: the content of the model file, the instruction set, and the version of the kernels'
//! layout. `content` tells the first, and `stamps` remembers it, so that a restart does not read the model. [`obtain`] is
//! the whole way: it looks for the file (`image` checks every byte of it), or makes it (`writer`), one process at a time.
//! `fault` answers where a mapped file fails, and [`Image::check`] says whether it did.
//! [`Store`] is the directory: what lies in it, how much it may hold, and what goes first.
//!
//! Carries names, formats and shapes of tensors without understanding them. Knows nothing of GGUF, kernels or engines, nor
//! where the directory is; so the command line can list and clear the cache without any of them.

mod align;
mod content;
mod error;
mod fault;
mod header;
mod image;
mod key;
mod obtain;
mod room;
mod share;
mod stamps;
mod store;
mod writer;

pub use error::{Damage, StoreError};
pub use header::{Summary, TensorEntry};
pub use image::{Image, MappedWeights};
pub use key::{ContentId, Key};
pub use obtain::{Model, Obtained, Stage, content_of, obtain};
pub use stamps::Stamp;
pub use store::{Entry, Store};
pub use writer::Writer;
