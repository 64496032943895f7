//! Bytes that start at a cache line: owned, or shared from elsewhere such as a memory map.
#![expect(unsafe_code, reason = "cache lines are viewed as bytes")]

use std::{fmt, ops::Range, sync::Arc};

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// A growing byte buffer that starts at a cache line.
#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    len: usize,
}

impl Lines {
    /// `None`: the system has not so much memory.
    pub(super) fn zeroed(len: usize) -> Option<Lines> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(len.div_ceil(64)).ok()?;
        lines.resize(len.div_ceil(64), Line([0; 64]));
        Some(Lines { lines, len })
    }

    /// Takes in or hides bytes at the end; allocates only to become larger than ever, and never gives back.
    pub(super) fn resize(&mut self, len: usize) {
        if len.div_ceil(64) > self.lines.len() {
            self.lines.resize(len.div_ceil(64), Line([0; 64]));
        }
        self.len = len;
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        // SAFETY: lines are plain initialized bytes without padding, and `len` of them are there.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}

/// Bytes of a packed matrix that somebody else keeps, such as a part of a mapped file.
#[derive(Clone)]
pub struct SharedBytes {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl SharedBytes {
    /// The part `range` of the owner's bytes; `None` if it does not reach so far.
    pub fn new(
        owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
        range: Range<usize>,
    ) -> Option<SharedBytes> {
        (*owner).as_ref().get(range.clone())?;
        Some(SharedBytes { owner, range })
    }

    fn as_slice(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shared bytes", self.range.len())
    }
}

/// Where a matrix keeps its bytes.
#[derive(Debug)]
pub(super) enum Storage {
    Owned(Lines),
    Shared(SharedBytes),
}

impl Storage {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Storage::Owned(lines) => lines.as_slice(),
            Storage::Shared(bytes) => bytes.as_slice(),
        }
    }
}
