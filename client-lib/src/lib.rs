//! Client of the Tandem daemon: asynchronous ([`Client`]) and blocking ([`blocking::Client`]).
//!
//! Owns the connection, retries, cancellation, typed errors, and starting the daemon on request ([`launch`]). Must not
//! know how text is generated, nor print anything or keep a global runtime: what to show is the caller's choice.
//!
//! ```no_run
//! # async fn example() -> Result<(), tandem_client::Error> {
//! use tandem_client::{Client, Event, GenerateRequest};
//!
//! let client = Client::from_env()?;
//! let mut stream = client.generate(GenerateRequest::user("Why is the sky blue?").max_tokens(200)).await?;
//! while let Some(event) = stream.next().await {
//!     match event? {
//!         Event::Chunk(chunk) => eprint!("{}", chunk.text),
//!         Event::Complete(complete) => eprintln!("\n{:?}", complete.usage),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Map: [`Client`] makes calls over one lazily opened channel; `door` decides whose socket is taken; `retry`
//! whether a failed call is made again;
//! [`TokenStream`] is a running generation; [`Events`] is what happens in the daemon; [`Error`] is every way to fail; [`launch`] starts the daemon.

pub mod blocking;
mod client;
mod door;
mod error;
mod events;
pub mod launch;
mod request;
mod retry;
mod stream;

pub use client::{Client, Health};
pub use door::UntrustedSocket;
pub use error::{Error, FieldError};
pub use events::Events;
pub use request::{GenerateRequest, Message};
pub use retry::Retry;
pub use stream::{Event, Generation, TokenStream};
pub use tandem_proto::paths::{Paths, PathsError};
/// Messages of the service, as requests and answers carry them.
pub use tandem_proto::v1;
