//! What a prepared file says about itself.
//!
//! ```text
//! 0    magic, 8 bytes
//! 8    version of this format, u32; then 4 bytes of zero
//! 16   offset of the table, u64; its length, u64; its checksum, u64
//! 40   16 bytes of zero
//! 56   checksum of the 56 bytes before, u64
//! 64   tensors, each from a multiple of 64 on, zeros between them
//!      table: JSON, up to the end of the file
//! ```
//! All numbers are little-endian. Each tensor's checksum covers it and the zeros after it, so that every byte of the
//! file is under one of the checksums. The table comes last because it is known last.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::align::{aligned, checksum};
use crate::error::Damage;
use crate::key::Key;

const MAGIC: [u8; 8] = *b"TandemPW";
/// Version of this format; the kernels' layout has its own.
pub(crate) const VERSION: u32 = 1;
/// Bytes before the first tensor.
pub(crate) const PREFIX: u64 = 64;
/// Larger tables than any model's are not read.
const TABLE_LIMIT: u64 = 256 << 20;

/// One tensor of a prepared file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorEntry {
    /// Its name in the model file.
    pub name: String,
    /// Its format, as whoever prepared it calls it.
    pub format: String,
    /// Its extents, as in the model file.
    pub shape: Vec<u64>,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Size of its data.
    pub bytes: u64,
    /// Of its data and the zeros that follow.
    pub(crate) checksum: u64,
}

impl TensorEntry {
    /// Where the next tensor starts; `None` where no file is so long.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes).and_then(aligned)
    }
}

/// What a prepared file is for, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The model's own name, or its file's.
    pub model: String,
    /// The model file it was made from, as it was called then.
    pub source: String,
    /// The model file's content, in hexadecimal.
    pub content: String,
    /// The instruction set.
    pub isa: String,
    /// Version of the kernels' layout.
    pub layout: u32,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Table {
    #[serde(flatten)]
    pub(crate) summary: Summary,
    pub(crate) tensors: Vec<TensorEntry>,
}

/// Encodes the first bytes of a file whose table lies at `offset`.
pub(crate) fn prefix(offset: u64, table: &[u8]) -> [u8; PREFIX as usize] {
    let mut bytes = [0; PREFIX as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&offset.to_le_bytes());
    bytes[24..32].copy_from_slice(&(table.len() as u64).to_le_bytes());
    bytes[32..40].copy_from_slice(&checksum([table]).to_le_bytes());
    let sum = checksum([&bytes[..56]]);
    bytes[56..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads and checks everything about a file but its tensors.
pub(crate) fn read(file: &File) -> Result<Table, Damage> {
    let unreadable = |error: std::io::Error| Damage::Unreadable {
        reason: error.to_string(),
    };
    let found_bytes = file.metadata().map_err(unreadable)?.len();
    let mut bytes = [0; PREFIX as usize];
    if found_bytes < PREFIX {
        return Err(Damage::Foreign);
    }
    file.read_exact_at(&mut bytes, 0).map_err(unreadable)?;
    if bytes[..8] != MAGIC {
        return Err(Damage::Foreign);
    }
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    if number(56) != checksum([&bytes[..56]]) {
        return Err(wrong_checksum("its beginning"));
    }
    let version = number(8) as u32;
    if version != VERSION {
        return Err(Damage::Version {
            found: version,
            expected: VERSION,
        });
    }
    let (offset, len) = (number(16), number(24));
    let expected_bytes = offset.saturating_add(len);
    if expected_bytes != found_bytes || len > TABLE_LIMIT {
        return Err(Damage::Size {
            found_bytes,
            expected_bytes,
        });
    }
    let mut json = vec![0; len as usize];
    file.read_exact_at(&mut json, offset).map_err(unreadable)?;
    if checksum([&json]) != number(32) {
        return Err(wrong_checksum("its table"));
    }
    let table: Table = serde_json::from_slice(&json).map_err(|error| Damage::Table {
        what: error.to_string(),
    })?;
    check_places(&table.tensors, offset)?;
    Ok(table)
}

pub(crate) fn wrong_checksum(what: &str) -> Damage {
    Damage::Checksum {
        what: what.to_owned(),
    }
}

/// Checks that the tensors follow each other without gap from the prefix to the table, and that no name is double.
fn check_places(tensors: &[TensorEntry], end: u64) -> Result<(), Damage> {
    let mut names = std::collections::HashSet::new();
    let mut next = Some(PREFIX);
    for tensor in tensors {
        let name = &tensor.name;
        if next != Some(tensor.offset) || tensor.end().is_none_or(|next| next > end) {
            let what = format!("`{name}` is not where it should be");
            return Err(Damage::Table { what });
        }
        if !names.insert(name) {
            let what = format!("`{name}` is there twice");
            return Err(Damage::Table { what });
        }
        next = tensor.end();
    }
    if next == Some(end) {
        Ok(())
    } else {
        let what = "it leaves out a part of the file".to_owned();
        Err(Damage::Table { what })
    }
}

impl Summary {
    /// Checks that the file is the one that was asked for.
    pub(crate) fn check(&self, key: &Key) -> Result<(), Damage> {
        let content = key.content.to_string();
        let (found, expected) = (self.layout.to_string(), key.layout.to_string());
        let parts = [
            ("content", &self.content, &content),
            ("instruction set", &self.isa, &key.isa),
            ("layout", &found, &expected),
        ];
        match parts
            .into_iter()
            .find(|(_, found, expected)| found != expected)
        {
            None => Ok(()),
            Some((what, found, expected)) => Err(Damage::Key {
                what,
                found: found.clone(),
                expected: expected.clone(),
            }),
        }
    }
}
