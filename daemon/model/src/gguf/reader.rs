//! Reads little-endian primitives from the front of a file and never asks for more than the file has.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;

use super::error::{Damage, GgufError};

/// Most bytes of a whole header: metadata and the table of tensors. The largest that people share have some 40 MiB, and
/// most of these a copy of the tokenizer for other programs. A file may be sparse, so that its size bounds nothing.
pub(super) const HEADER_LIMIT_BYTES: u64 = 96 << 20;

/// A position in the header of one file.
pub(super) struct Reader<'a> {
    path: &'a Path,
    input: BufReader<&'a File>,
    position: u64,
    file_bytes: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File, file_bytes: u64) -> Self {
        Self {
            path,
            input: BufReader::with_capacity(1 << 16, file),
            position: 0,
            file_bytes,
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn damaged(&self, damage: Damage) -> GgufError {
        GgufError::Damaged {
            path: self.path.to_owned(),
            damage: Box::new(damage),
        }
    }

    fn available(&self) -> u64 {
        self.file_bytes - self.position
    }

    /// Fails unless the rest of the file can hold `count` things of at least `least_bytes` each.
    pub(super) fn check(
        &self,
        count: u64,
        least_bytes: u64,
        what: &str,
    ) -> Result<usize, GgufError> {
        let needed = count.checked_mul(least_bytes);
        match (needed, usize::try_from(count)) {
            (Some(needed), Ok(count)) if needed <= self.available() => {
                self.bound(needed, what)?;
                Ok(count)
            }
            _ => Err(self.short(needed.unwrap_or(u64::MAX), what)),
        }
    }

    /// Fails where a header would grow beyond what any model has; a file with holes can have room for that.
    fn bound(&self, needed: u64, what: &str) -> Result<(), GgufError> {
        let value = self.position.saturating_add(needed);
        if value <= HEADER_LIMIT_BYTES {
            return Ok(());
        }
        Err(self.damaged(Damage::TooMany {
            what: format!("the size of the header with {what}, in bytes,"),
            value,
            limit: HEADER_LIMIT_BYTES,
        }))
    }

    fn short(&self, needed_bytes: u64, what: &str) -> GgufError {
        self.damaged(Damage::BeyondEnd {
            what: what.to_owned(),
            offset: self.position,
            needed_bytes,
            available_bytes: self.available(),
        })
    }

    /// Appends exactly `len` bytes to `into`.
    pub(super) fn append(
        &mut self,
        len: u64,
        into: &mut Vec<u8>,
        what: &str,
    ) -> Result<(), GgufError> {
        let len = self.check(len, 1, what)?;
        let start = into.len();
        into.resize(start + len, 0);
        self.fill(&mut into[start..], what)
    }

    fn fill(&mut self, target: &mut [u8], what: &str) -> Result<(), GgufError> {
        self.check(target.len() as u64, 1, what)?;
        match self.input.read_exact(target) {
            Ok(()) => {
                self.position += target.len() as u64;
                Ok(())
            }
            // The file was cut while we read it.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                Err(self.short(target.len() as u64, what))
            }
            Err(source) => Err(GgufError::ReadHeader {
                path: self.path.to_owned(),
                offset: self.position,
                source,
            }),
        }
    }

    /// Passes over `len` bytes.
    pub(super) fn skip(&mut self, len: u64, what: &str) -> Result<(), GgufError> {
        self.check(len, 1, what)?;
        let mut left = len;
        let mut scratch = [0; 4096];
        while left > 0 {
            let part = scratch
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            self.fill(&mut scratch[..part], what)?;
            left -= part as u64;
        }
        Ok(())
    }

    pub(super) fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.bytes(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.bytes(what)?))
    }

    /// Reads a length-prefixed string that must be UTF-8 and at most `limit` bytes.
    pub(super) fn name(&mut self, limit: u64, what: &str) -> Result<String, GgufError> {
        let offset = self.position;
        let len = self.u64(what)?;
        if len > limit {
            let what = format!("the length of {what} at offset {offset}");
            return Err(self.damaged(Damage::TooMany {
                what,
                value: len,
                limit,
            }));
        }
        let mut bytes = Vec::new();
        self.append(len, &mut bytes, what)?;
        String::from_utf8(bytes).map_err(|_| {
            self.damaged(Damage::NotUtf8 {
                what: what.to_owned(),
                offset,
            })
        })
    }
}
