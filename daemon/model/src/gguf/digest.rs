//! Telling whether two files say the same about something, without keeping either.

use std::hash::{DefaultHasher, Hash as _, Hasher};

use super::Gguf;
use super::value::Value;

/// A digest of metadata: equal where keys and values are, and by no accident in practice. Of this process; keys are no secret, so
/// it protects from accidents, not from files made to collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest([u64; 2]);

impl Gguf {
    /// Digests all metadata whose key is `wanted`.
    #[must_use]
    pub fn digest(&self, wanted: impl Fn(&str) -> bool) -> Digest {
        let metadata = self.metadata.iter().filter(|(key, _)| wanted(key));
        let mut metadata: Vec<_> = metadata.collect();
        metadata.sort_unstable_by_key(|(key, _)| *key);
        Digest([0u8, 1].map(|half| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(half);
            for (key, value) in &metadata {
                key.hash(&mut hasher);
                value.feed(&mut hasher);
            }
            hasher.finish()
        }))
    }
}

impl Value {
    fn feed(&self, hasher: &mut impl Hasher) {
        std::mem::discriminant(self).hash(hasher);
        match self {
            Self::Unsigned(n) => n.hash(hasher),
            Self::Signed(n) => n.hash(hasher),
            Self::Float(x) => x.to_bits().hash(hasher),
            Self::Bool(b) => b.hash(hasher),
            Self::Text(text) => text.hash(hasher),
            Self::Texts(texts) => texts.hash(hasher),
            Self::Numbers { kind, bytes } => (kind, bytes).hash(hasher),
            Self::Nested => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{GgufWriter, open};

    #[test]
    fn what_is_wanted_decides_and_nothing_else() {
        let digest = |file: GgufWriter| open(&file.finish()).digest(|key| key.starts_with("a."));
        let usual = || GgufWriter::new().u32("a.n", 1).strings("a.s", &["x", "yz"]);
        let first = digest(usual());
        assert_eq!(digest(usual().u32("b.n", 7)), first);
        let other_order = GgufWriter::new().strings("a.s", &["x", "yz"]).u32("a.n", 1);
        assert_eq!(digest(other_order), first);
        for other in [
            GgufWriter::new().u32("a.n", 2).strings("a.s", &["x", "yz"]),
            GgufWriter::new().u32("a.n", 1).strings("a.s", &["xy", "z"]),
            GgufWriter::new().u32("a.m", 1).strings("a.s", &["x", "yz"]),
            usual().str("a.t", ""),
        ] {
            assert_ne!(digest(other), first);
        }
    }
}
