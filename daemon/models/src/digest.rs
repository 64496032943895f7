//! SHA-256 as lower-case hexadecimal, the form in which the hub names its blobs.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The digest that `hasher` has come to, in hexadecimal.
pub(crate) fn finish(hasher: Sha256) -> String {
    hasher
        .finalize()
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
            hex
        })
}

/// Whether `etag` is a SHA-256: the hub names large files by it, and small ones by a Git hash.
pub(crate) fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|byte| byte.is_ascii_hexdigit())
}
