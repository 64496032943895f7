//! A running generation.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_stream::{Stream, StreamExt};
use tonic::{Status, Streaming};

use crate::v1::generate_response::Response;
use crate::{Error, v1};

/// One message of a running generation.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one comes once, and a box would show in every match"
)]
pub enum Event {
    /// What one step added.
    Chunk(v1::GenerateChunk),
    /// The end: why, and what it took. Nothing follows.
    Complete(v1::GenerateComplete),
}

/// A whole generation.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// All text.
    pub text: String,
    /// All generated tokens.
    pub token_ids: Vec<u32>,
    /// One per token, where the request asks for them.
    pub logprobs: Vec<v1::TokenLogprobs>,
    /// Why it ended, and what it took.
    pub complete: v1::GenerateComplete,
}

/// The events of a running generation, ending after [`Event::Complete`] or the first error.
///
/// Dropping it cancels the generation.
#[derive(Debug)]
pub struct TokenStream {
    first: Option<v1::GenerateResponse>,
    messages: Option<Streaming<v1::GenerateResponse>>,
    expiry: Option<Expiry>,
    socket: Arc<Path>,
}

/// When a generation has to be complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Duration,
}

#[derive(Debug)]
struct Expiry {
    sleep: Pin<Box<Sleep>>,
    limit: Duration,
}

impl TokenStream {
    pub(crate) fn new(
        first: Option<v1::GenerateResponse>,
        messages: Streaming<v1::GenerateResponse>,
        deadline: Option<Deadline>,
        socket: Arc<Path>,
    ) -> Self {
        let expiry = deadline.map(|d| Expiry {
            sleep: Box::pin(sleep_until(d.at)),
            limit: d.limit,
        });
        Self {
            first,
            messages: Some(messages),
            expiry,
            socket,
        }
    }

    /// Waits for the next event; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        StreamExt::next(self).await
    }

    /// Waits for the end and returns everything.
    ///
    /// # Errors
    /// Returns the error that ended the stream, if one did.
    pub async fn collect(mut self) -> Result<Generation, Error> {
        let (mut text, mut token_ids, mut logprobs) = (String::new(), Vec::new(), Vec::new());
        while let Some(event) = self.next().await {
            match event? {
                Event::Chunk(chunk) => {
                    text.push_str(&chunk.text);
                    token_ids.extend(chunk.token_ids);
                    logprobs.extend(chunk.logprobs);
                }
                Event::Complete(complete) => {
                    return Ok(Generation {
                        text,
                        token_ids,
                        logprobs,
                        complete,
                    });
                }
            }
        }
        Err(Error::UnexpectedEnd)
    }

    fn poll_message(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<v1::GenerateResponse, Status>>> {
        match (self.first.take(), &mut self.messages) {
            (Some(first), _) => Poll::Ready(Some(Ok(first))),
            (None, Some(messages)) => Pin::new(messages).poll_next(context),
            (None, None) => Poll::Ready(None),
        }
    }

    /// Releases the call, so that nothing is read after the end.
    fn end(&mut self, last: Result<Event, Error>) -> Poll<Option<Result<Event, Error>>> {
        self.messages = None;
        Poll::Ready(Some(last))
    }
}

impl Stream for TokenStream {
    type Item = Result<Event, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.messages.is_none() {
            return Poll::Ready(None);
        }
        loop {
            match self.poll_message(context) {
                Poll::Ready(Some(Ok(message))) => match message.response {
                    Some(Response::Chunk(chunk)) => {
                        return Poll::Ready(Some(Ok(Event::Chunk(chunk))));
                    }
                    Some(Response::Complete(complete)) => {
                        return self.end(Ok(Event::Complete(complete)));
                    }
                    // A kind of message that this client is too old to know.
                    None => {}
                },
                Poll::Ready(Some(Err(status))) => {
                    let error = Error::from_status(&status, &self.socket);
                    let limit = self.expiry.as_ref().map(|expiry| expiry.limit);
                    return self.end(Err(match limit {
                        Some(limit) => error.of_limit(limit),
                        None => error,
                    }));
                }
                Poll::Ready(None) => return self.end(Err(Error::UnexpectedEnd)),
                Poll::Pending => break,
            }
        }
        if let Some(expiry) = &mut self.expiry
            && expiry.sleep.as_mut().poll(context).is_ready()
        {
            let error = Error::deadline(expiry.limit);
            return self.end(Err(error));
        }
        Poll::Pending
    }
}
