//! Numbers that nobody can guess: randomness for requests, and keys of histories.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use tandem_engine::ClientKey;

use crate::convert::History;

/// A hash of a counter or a name under keys that the system drew.
#[derive(Debug, Default)]
pub(crate) struct Entropy {
    keys: RandomState,
    drawn: AtomicU64,
}

impl Entropy {
    /// Returns the next number.
    pub(crate) fn next(&self) -> u64 {
        self.keys
            .hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the key of the texts that help to guess a request of `process`, where there are any. Nobody can choose a
    /// name that has the key of another.
    pub(crate) fn client(&self, history: &History, process: Option<i32>) -> Option<ClientKey> {
        let key = match history {
            History::Off => return None,
            History::Named(name) => self.keys.hash_one(("named", name)),
            History::Process => self.keys.hash_one(("process", process?)),
        };
        Some(ClientKey(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_are_those_of_a_process_or_a_name() {
        let keys = Entropy::default();
        let named = |name: &str| keys.client(&History::Named(name.to_owned()), Some(7));
        let process = |id| keys.client(&History::Process, id);
        assert_eq!(process(Some(7)), process(Some(7)), "of every connection");
        assert_ne!(process(Some(7)), process(Some(8)));
        assert_eq!(
            named("a"),
            keys.client(&History::Named("a".to_owned()), None)
        );
        assert_ne!(named("a"), named("b"));
        assert_ne!(named("7"), process(Some(7)));
        assert_eq!(process(None), None, "nobody knows whose");
        assert_eq!(keys.client(&History::Off, Some(7)), None);
    }
}
