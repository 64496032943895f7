//! How many requests a pair may take on at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the requests that run and wait.
#[derive(Debug)]
pub(crate) struct Room {
    capacity: AtomicUsize,
    reserved: AtomicUsize,
}

/// Room for one request; held until the engine is done with it.
#[derive(Debug)]
pub(crate) struct Reservation(Arc<Room>);

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity: AtomicUsize::new(capacity),
            reserved: AtomicUsize::new(0),
        }
    }

    /// Takes room for one request; `None`: there is none.
    pub(super) fn reserve(self: &Arc<Self>) -> Option<Reservation> {
        let capacity = self.capacity();
        let taken = self
            .reserved
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |reserved| {
                (reserved < capacity).then_some(reserved + 1)
            });
        taken.is_ok().then(|| Reservation(Arc::clone(self)))
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Acquire)
    }

    /// Takes effect for the next request; those that are in stay.
    pub(super) fn set_capacity(&self, capacity: usize) {
        self.capacity.store(capacity, Ordering::Release);
    }

    pub(super) fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Acquire)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.reserved.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_out_and_comes_back() {
        let room = Arc::new(Room::new(2));
        let (one, two) = (room.reserve(), room.reserve());
        assert!(one.is_some() && two.is_some() && room.reserve().is_none());
        room.set_capacity(1);
        drop(one);
        assert!(room.reserve().is_none(), "one is in, and one may be");
        drop(two);
        assert_eq!(room.reserved(), 0);
        assert!(room.reserve().is_some());
    }
}
