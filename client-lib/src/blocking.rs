//! The same client for programs without a runtime.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::launch::{Launcher, Outcome, Progress};
use crate::{Error, Event, GenerateRequest, Generation, v1};

/// Turns of the runtime that a cancellation needs to reach the socket: the call's task, the connection's, and slack.
const CANCEL_TURNS: usize = 16;

/// A client that blocks. Cloning is cheap; clones share the connection and a runtime on the calling threads.
///
/// Must not be used, nor dropped, inside an asynchronous runtime; use [`crate::Client`] there.
#[derive(Clone, Debug)]
pub struct Client {
    // Before the runtime, so that the connection goes first.
    client: crate::Client,
    runtime: Arc<Runtime>,
}

impl Client {
    /// Makes a client of the daemon that the environment names.
    ///
    /// # Errors
    /// Returns an error where the environment names none, or no runtime can be made.
    pub fn from_env() -> Result<Self, Error> {
        Self::wrap(crate::Client::from_env()?)
    }

    /// Makes a client of the daemon on this socket.
    ///
    /// # Errors
    /// Returns an error where no socket can have this path, or no runtime can be made.
    pub fn new(socket: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::wrap(crate::Client::new(socket)?)
    }

    fn wrap(client: crate::Client) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| Error::Runtime { source })?;
        Ok(Self {
            client,
            runtime: Arc::new(runtime),
        })
    }

    /// Starts the daemon if none runs, and waits until it serves; see [`Launcher::ensure_running`].
    ///
    /// # Errors
    /// Returns an error where the daemon does not come to serve.
    pub fn ensure_running(
        &self,
        launcher: &Launcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Error> {
        self.runtime
            .block_on(launcher.ensure_running(&self.client, progress))
    }

    /// Starts a generation and waits for its first event.
    ///
    /// # Errors
    /// See [`crate::Client::generate`].
    pub fn generate(&self, request: impl Into<GenerateRequest>) -> Result<TokenStream, Error> {
        let stream = self.runtime.block_on(self.client.generate(request))?;
        Ok(TokenStream {
            stream: Some(stream),
            runtime: self.runtime.clone(),
        })
    }

    /// Turns text into token ids.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub fn tokenize(&self, request: v1::TokenizeRequest) -> Result<v1::TokenizeResponse, Error> {
        self.runtime.block_on(self.client.tokenize(request))
    }

    /// Turns token ids back into text.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub fn detokenize(
        &self,
        request: v1::DetokenizeRequest,
    ) -> Result<v1::DetokenizeResponse, Error> {
        self.runtime.block_on(self.client.detokenize(request))
    }

    /// Lists the configured pairs.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub fn list_pairs(&self) -> Result<Vec<v1::PairInfo>, Error> {
        self.runtime.block_on(self.client.list_pairs())
    }

    /// Asks what the daemon is doing.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub fn status(&self) -> Result<v1::StatusResponse, Error> {
        self.runtime.block_on(self.client.status())
    }

    /// Has the daemon read its configuration again; see [`crate::Client::reload`].
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub fn reload(&self) -> Result<v1::ReloadResponse, Error> {
        self.runtime.block_on(self.client.reload())
    }
}

/// The events of a running generation, as an iterator. Dropping it cancels the generation.
#[derive(Debug)]
pub struct TokenStream {
    stream: Option<crate::TokenStream>,
    runtime: Arc<Runtime>,
}

impl TokenStream {
    /// Waits for the end and returns everything.
    ///
    /// # Errors
    /// Returns the error that ended the stream, if one did.
    pub fn wait(mut self) -> Result<Generation, Error> {
        let stream = self.stream.take().ok_or(Error::UnexpectedEnd)?;
        self.runtime.block_on(stream.collect())
    }
}

impl Iterator for TokenStream {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.runtime.block_on(self.stream.as_mut()?.next())
    }
}

impl Drop for TokenStream {
    fn drop(&mut self) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        drop(stream);
        // The runtime runs only while somebody blocks on it, and the daemon has to hear of this now.
        self.runtime.block_on(async {
            for _ in 0..CANCEL_TURNS {
                tokio::task::yield_now().await;
            }
        });
    }
}
