//! How many requests are being served, for those who have to look after something only then: nothing wakes up while the
//! daemon is idle.

use tokio::sync::watch;

/// Counts over all pairs; clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Activity(watch::Sender<usize>);

/// Counts one request until it drops.
#[derive(Debug)]
pub(crate) struct Active(watch::Sender<usize>);

impl Default for Activity {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Activity {
    pub(crate) fn begin(&self) -> Active {
        self.0.send_modify(|count| *count += 1);
        Active(self.0.clone())
    }

    pub(crate) fn watch(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
