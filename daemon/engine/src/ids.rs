//! Who asks, and for what: names that every part of the engine may know.

/// Names one request inside an engine; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SequenceId(pub(crate) u64);

/// Names a client; no client's history serves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientKey(pub u64);
