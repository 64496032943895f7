//! What happened to pairs and memory, for whoever watches.
//!
//! Nobody has to: an event without a watcher is dropped, and a watcher that is too slow learns how many it missed.

use std::time::Duration;

use futures_util::{Stream, StreamExt};
use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tonic::Status;

use crate::convert::duration;

/// Events that are kept for a watcher that is behind; a load has a few dozen.
const KEPT: usize = 256;

/// Where events are told; clones tell the same watchers.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<v1::WatchResponse>);

impl Default for Events {
    fn default() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }
}

impl Events {
    /// Tells an event of one pair; the empty name is the whole daemon's.
    pub(crate) fn tell(&self, pair: &str, event: Event) {
        let event = v1::WatchResponse {
            pair: pair.to_owned(),
            event: Some(event),
        };
        // An error means that nobody watches.
        let _watchers = self.0.send(event);
    }

    /// Returns what happens from now on.
    pub(crate) fn watch(
        &self,
    ) -> impl Stream<Item = Result<v1::WatchResponse, Status>> + Send + use<> {
        BroadcastStream::new(self.0.subscribe()).map(|event| {
            Ok(event.unwrap_or_else(
                |BroadcastStreamRecvError::Lagged(missed)| v1::WatchResponse {
                    pair: String::new(),
                    event: Some(Event::Missed(missed)),
                },
            ))
        })
    }
}

/// A pair takes requests.
pub(crate) fn ready(took: Duration) -> Event {
    Event::Ready(v1::PairReady {
        took: Some(duration(took)),
    })
}

/// A pair cannot serve.
pub(crate) fn failed(error: &str) -> Event {
    Event::Failed(v1::PairFailed {
        error: error.to_owned(),
    })
}

/// Memory of a pair was given back.
pub(crate) fn unloaded(reason: &str, freed_bytes: u64, took: Duration) -> Event {
    Event::Unloaded(v1::PairUnloaded {
        reason: reason.to_owned(),
        freed_bytes,
        took: Some(duration(took)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_watcher_learns_what_it_missed() {
        let events = Events::default();
        events.tell("a", failed("before anybody watched"));
        let mut watch = std::pin::pin!(events.watch());
        for _ in 0..KEPT + 3 {
            events.tell("a", failed("one"));
        }
        let first = watch.next().await.expect("events").expect("no error");
        assert_eq!(first.event, Some(Event::Missed(3)));
        let second = watch.next().await.expect("events").expect("no error");
        assert_eq!(
            (second.pair.as_str(), second.event),
            ("a", Some(failed("one")))
        );
    }
}
