//! Whether the daemon serves, drains or has ended, and how many streams are open.

use tokio::sync::watch;

/// The daemon's way from start to end; it never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Takes requests.
    Serving,
    /// Takes no more requests; running streams go on.
    Draining,
    /// Running streams end with an error.
    Ended,
}

/// Where the phase is set and open streams are counted.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    phase: watch::Sender<Phase>,
    open: watch::Sender<()>,
}

/// Held by an open stream: counts it and tells it the phase.
#[derive(Debug)]
pub(crate) struct OpenStream {
    phase: watch::Receiver<Phase>,
    _open: watch::Receiver<()>,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Serving),
            open: watch::Sender::new(()),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Counts a stream as open until the result is dropped.
    pub(crate) fn open_stream(&self) -> OpenStream {
        OpenStream {
            phase: self.phase.subscribe(),
            _open: self.open.subscribe(),
        }
    }

    pub(crate) fn open_streams(&self) -> usize {
        self.open.receiver_count()
    }

    /// Waits until no stream is open.
    pub(crate) async fn all_closed(&self) {
        self.open.closed().await;
    }
}

impl OpenStream {
    /// Waits until running streams have to end.
    pub(crate) async fn ended(&mut self) {
        // Only the end of the daemon drops the sender.
        ended(self.phase.clone()).await;
    }
}

/// Waits until `phase` is past serving.
pub(crate) async fn draining(mut phase: watch::Receiver<Phase>) {
    let _sender_gone = phase.wait_for(|phase| *phase != Phase::Serving).await;
}

/// Waits until running streams have to end.
pub(crate) async fn ended(mut phase: watch::Receiver<Phase>) {
    let _sender_gone = phase.wait_for(|phase| *phase == Phase::Ended).await;
}
