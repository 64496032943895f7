//! Where tensors start, and the checksum of what lies between two starts.

use std::hash::Hasher;

use twox_hash::XxHash3_64;

/// Tensors start at multiples of this: a cache line, as the kernels like it.
pub(crate) const ALIGNMENT: u64 = 64;

/// The first multiple of the alignment from `offset` on; `None` where it would overflow.
pub(crate) fn aligned(offset: u64) -> Option<u64> {
    offset.checked_next_multiple_of(ALIGNMENT)
}

/// XXH3 of all parts, one after the other: it finds damage, it does not withstand forgery.
pub(crate) fn checksum<const N: usize>(parts: [&[u8]; N]) -> u64 {
    let mut hasher = XxHash3_64::new();
    for part in parts {
        hasher.write(part);
    }
    hasher.finish()
}
