//! What lasts until it is dropped, whatever the platform does to end it.

use std::fmt;

/// Tells of changes of the memory pressure until it is dropped.
#[derive(Debug)]
pub struct PressureWatch {
    _end: OnDrop,
}

/// Keeps the system awake until it is dropped.
#[derive(Debug)]
pub struct KeepAwake {
    _end: OnDrop,
}

impl PressureWatch {
    pub(super) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self {
            _end: OnDrop(Some(Box::new(end))),
        }
    }
}

impl KeepAwake {
    pub(super) fn new(end: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self {
            _end: OnDrop(Some(Box::new(end))),
        }
    }

    /// Returns a guard where there is nothing to do.
    pub(super) fn none() -> Self {
        Self { _end: OnDrop(None) }
    }
}

/// Does something once, when it is dropped.
struct OnDrop(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl fmt::Debug for OnDrop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("OnDrop").finish_non_exhaustive()
    }
}
