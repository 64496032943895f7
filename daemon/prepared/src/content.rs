//! What a model file holds, as a number.
//!
//! The number is a SHA-256, because it decides whose weights are used: with a hash that can be forged, a stranger's model could
//! pass for another one. Several threads hash the parts of the file. It is read whole for this only when it is new; restarts
//! go by `stamps`.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::key::ContentId;
use crate::share::share_out;

/// Bytes that one thread hashes at a time. Part of the definition: with other parts, the numbers are others.
const PART: u64 = 16 << 20;
/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// Reads `bytes` bytes of the file and returns what they are.
pub(crate) fn identify(
    file: &File,
    bytes: u64,
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
) -> io::Result<ContentId> {
    let count = usize::try_from(bytes.div_ceil(PART)).map_err(io::Error::other)?;
    let digests: Vec<OnceLock<[u8; 32]>> = vec![OnceLock::new(); count];
    let hash_part = |part: usize| {
        let start = part as u64 * PART;
        let end = bytes.min(start + PART);
        let (mut hasher, mut offset) = (Sha256::new(), start);
        let mut buffer = vec![0; READ];
        while offset < end {
            let piece = &mut buffer[..usize::try_from(end - offset).map_or(READ, |n| n.min(READ))];
            file.read_exact_at(piece, offset)?;
            hasher.update(&*piece);
            offset += piece.len() as u64;
        }
        digests[part].get_or_init(|| hasher.finalize().into());
        Ok::<u64, io::Error>(end - start)
    };
    share_out(threads, count, hash_part, progress)?;
    let mut whole = Sha256::new();
    whole.update(bytes.to_le_bytes());
    for digest in &digests {
        whole.update(digest.get().expect("every part was hashed"));
    }
    Ok(ContentId(whole.finalize().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn id(bytes: &[u8], threads: usize) -> ContentId {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let threads = NonZeroUsize::new(threads).unwrap();
        identify(&file, bytes.len() as u64, threads, &mut |_| {}).unwrap()
    }

    #[test]
    fn every_byte_counts_and_threads_do_not() {
        let mut bytes: Vec<u8> = (0..PART as usize + 100).map(|at| (at / 7) as u8).collect();
        let all = id(&bytes, 1);
        assert_eq!(all, id(&bytes, 3));
        assert_ne!(all, id(&bytes[..bytes.len() - 1], 2));
        for at in [0, READ, PART as usize - 1, PART as usize, bytes.len() - 1] {
            bytes[at] ^= 1;
            assert_ne!(all, id(&bytes, 2), "byte {at}");
            bytes[at] ^= 1;
        }
        assert_ne!(id(&[], 1), id(&[0], 1));
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(identify(&file, 10, NonZeroUsize::MIN, &mut |_| {}).is_err());
    }
}
