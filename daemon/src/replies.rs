//! The way of one request's output from the engine thread to its stream.
//!
//! Neither side ever waits for the other. The engine thread appends to what is pending; the stream takes it when its
//! client has room. A slow reader therefore gets fewer, larger chunks, loses nothing, and holds nobody up; what can be
//! pending is bounded by the request's own length, which the context bounds. The opposite way goes one flag: the stream
//! is gone, and why.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tandem_engine::sampling::TokenLogprobs;
use tandem_engine::{FinishReason, RequestStats};
use tandem_model::TokenId;
use tokio::sync::Notify;
use tonic::Status;

use crate::record::Times;

/// A pending chunk that has this much text or this many tokens is closed, and a new one begun, so that no message grows
/// beyond what any client accepts.
const MAX_CHUNK_TEXT_BYTES: usize = 64 << 10;
const MAX_CHUNK_TOKENS: usize = 16 << 10;
/// The same for tokens with log-probabilities, of which each has up to twenty likeliest tokens.
const MAX_CHUNK_LOGPROBS: usize = 4 << 10;

/// One thing for the stream to send.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What one or more steps added.
    Chunk(Chunk),
    /// The regular end; nothing follows.
    Finished(Box<Finished>),
    /// The end by an error; nothing follows.
    Failed(Status),
}

/// Text that became certain and tokens that were committed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) text: String,
    pub(crate) token_ids: Vec<TokenId>,
    pub(crate) logprobs: Vec<TokenLogprobs>,
}

/// How a request ended and what it took.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) reason: FinishReason,
    pub(crate) stats: RequestStats,
    pub(crate) times: Times,
}

/// Why a stream is gone before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Gone {
    /// The client cancelled or vanished.
    Client = 1,
    /// Its deadline passed.
    Deadline = 2,
    /// The daemon ended.
    Drained = 3,
}

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    more: Notify,
    /// 0, or the value of a [`Gone`].
    gone: AtomicU8,
}

#[derive(Debug, Default)]
struct Pending {
    chunks: VecDeque<Chunk>,
    end: Option<Reply>,
    ended: bool,
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        // Nothing that holds this lock can leave it half changed.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine thread's side.
#[derive(Debug)]
pub(crate) struct Sink(Arc<Shared>);

/// The stream's side; dropping it cancels the request before the next step.
#[derive(Debug)]
pub(crate) struct Replies(Arc<Shared>);

/// Makes the two sides of one request.
pub(crate) fn channel() -> (Sink, Replies) {
    let shared = Arc::new(Shared::default());
    (Sink(Arc::clone(&shared)), Replies(shared))
}

impl Sink {
    /// Adds to what is pending.
    pub(crate) fn push(&self, text: &str, token_ids: &[TokenId], logprobs: Vec<TokenLogprobs>) {
        let mut pending = self.0.pending();
        let has_room = |chunk: &Chunk| {
            chunk.text.len() + text.len() <= MAX_CHUNK_TEXT_BYTES
                && chunk.token_ids.len() + token_ids.len() <= MAX_CHUNK_TOKENS
                && chunk.logprobs.len() + logprobs.len() <= MAX_CHUNK_LOGPROBS
        };
        if !pending.chunks.back().is_some_and(has_room) {
            pending.chunks.push_back(Chunk::default());
        }
        if let Some(chunk) = pending.chunks.back_mut() {
            chunk.text.push_str(text);
            chunk.token_ids.extend_from_slice(token_ids);
            chunk.logprobs.extend(logprobs);
        }
        drop(pending);
        self.0.more.notify_one();
    }

    /// Ends the stream after what is pending.
    pub(crate) fn finish(self, finished: Finished) {
        self.end(Reply::Finished(Box::new(finished)));
    }

    /// Ends the stream with an error after what is pending.
    pub(crate) fn fail(self, status: Status) {
        self.end(Reply::Failed(status));
    }

    /// Returns why nobody listens any more; `None`: somebody does.
    pub(crate) fn gone(&self) -> Option<Gone> {
        match self.0.gone.load(Ordering::Acquire) {
            0 => None,
            2 => Some(Gone::Deadline),
            3 => Some(Gone::Drained),
            _ => Some(Gone::Client),
        }
    }

    fn end(&self, reply: Reply) {
        let mut pending = self.0.pending();
        if !pending.ended {
            pending.ended = true;
            pending.end = Some(reply);
        }
        drop(pending);
        self.0.more.notify_one();
    }
}

impl Drop for Sink {
    /// A stream never hangs: a sink that went without an end is an error of ours, and says so.
    fn drop(&mut self) {
        self.end(Reply::Failed(crate::errors::internal(
            "the engine thread dropped the request",
        )));
    }
}

impl Replies {
    /// Waits for the next reply; `None` after the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Reply> {
        loop {
            {
                let mut pending = self.0.pending();
                if let Some(chunk) = pending.chunks.pop_front() {
                    return Some(Reply::Chunk(chunk));
                }
                if let Some(end) = pending.end.take() {
                    return Some(end);
                }
                if pending.ended {
                    return None;
                }
            }
            self.0.more.notified().await;
        }
    }

    /// Ends the request for a reason that is not the client's; its log line then says so.
    pub(crate) fn abandon(&self, why: Gone) {
        // Only the first reason counts.
        let _already =
            self.0
                .gone
                .compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        self.abandon(Gone::Client);
    }
}

#[cfg(test)]
#[path = "replies_tests.rs"]
mod tests;
