//! One model: its file, its tokens and its text, and what it computes on a device.
//!
//! A model knows tokens, rows and slots. It must not know requests, drafts or how tokens are chosen, which is `tandem-engine`'s,
//! nor tokio, tonic, the command line, the environment or the clock.

pub mod backend;
pub mod check;
pub mod detokenizer;
pub mod gguf;
pub mod hardware;
pub mod load;
pub mod logits;
pub mod math;
pub mod model;
pub mod synthetic;
pub mod template;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;
pub mod tokenizer;

pub use token::TokenId;
