//! What happens in the daemon, as it happens.

use std::path::Path;
use std::sync::Arc;

use tonic::Streaming;

use crate::{Error, v1};

/// Events of pairs and memory, until the daemon ends.
#[derive(Debug)]
pub struct Events {
    messages: Streaming<v1::WatchResponse>,
    socket: Arc<Path>,
}

impl Events {
    pub(crate) fn new(messages: Streaming<v1::WatchResponse>, socket: Arc<Path>) -> Self {
        Self { messages, socket }
    }

    /// Waits for the next event; `None` when the daemon ends. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Returns what broke the connection.
    pub async fn next(&mut self) -> Result<Option<v1::WatchResponse>, Error> {
        let message = self.messages.message().await;
        message.map_err(|status| Error::from_status(&status, &self.socket))
    }
}
