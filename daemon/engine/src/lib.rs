//! Speculative decoding: drafters, verification, and the step loop that ties them and a model together.
//!
//! The engine knows requests and tokens, and models by what they compute of rows (`tandem-model`). It must not know tokio,
//! tonic, the command line, the environment or the clock: callers pass time in, and outputs are return values.

pub mod draft;
pub mod engine;
mod ids;
pub mod pair;
pub mod policy;
pub mod request;
pub mod sampling;
mod sequence;
pub mod verify;

pub use ids::{ClientKey, SequenceId};
pub use request::{FinishReason, Output, Request, RequestFailure, RequestStats, StopConditions};
