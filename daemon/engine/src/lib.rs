//! Speculative decoding: models, caches, drafters, verification, and the step loop that ties them together.
//!
//! The engine knows tokens, tensors and files. It must not know tokio, tonic, the command line, the environment or
//! the clock: callers pass time in, and outputs are return values.

pub mod backend;
pub mod check;
pub mod detokenizer;
pub mod draft;
pub mod engine;
pub mod gguf;
mod hardware;
pub mod model;
pub mod pair;
pub mod policy;
pub mod request;
pub mod sampling;
mod sequence;
pub mod synthetic;
pub mod template;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tokenizer;
pub mod verify;

pub use request::{
    FinishReason, Output, Request, RequestFailure, RequestStats, SequenceId, StopConditions,
    TokenId,
};
