//! GGUF model files: the header, read once and checked, and the bytes of single tensors, read on demand.
//!
//! A file may be damaged, half downloaded or hostile, so every count, length and offset is held against the file's
//! size before anything is allocated. This module knows the container only: what the keys and tensors mean belongs to
//! the tokenizer, the chat template and the model.

mod digest;
mod error;
mod finite;
mod header;
mod label;
mod metadata;
mod reader;
mod tensor;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tandem_kernels::Format;
use tandem_prepared::Stamp;

pub use digest::Digest;
pub use error::{Damage, GgufError};
pub use tensor::TensorInfo;
pub use value::Strings;

use value::Value;
pub(crate) use value::shown;

/// An open GGUF file: its metadata and table of tensors in memory, its weights on disk.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: File,
    stamp: Stamp,
    file_bytes: u64,
    data_start: u64,
    metadata: HashMap<String, Value>,
    tensors: Vec<TensorInfo>,
    by_name: HashMap<String, usize>,
}

impl Gguf {
    /// Opens a file and reads its header, of version 2 or 3; no weights are read.
    ///
    /// # Errors
    /// When the file cannot be read, is no GGUF file, holds a tensor format we cannot compute with, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GgufError> {
        let path = path.as_ref();
        let failed = |source| GgufError::Open {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        let stat = file.metadata().map_err(failed)?;
        if !stat.is_file() {
            return Err(GgufError::NotAFile {
                path: path.to_owned(),
            });
        }
        let header = header::read(path, &file, stat.len())?;
        let by_name = header
            .tensors
            .iter()
            .enumerate()
            .map(|(at, t)| (t.name.clone(), at))
            .collect();
        Ok(Self {
            path: path.to_owned(),
            file,
            stamp: Stamp::of(&stat),
            file_bytes: stat.len(),
            data_start: header.data_start,
            metadata: header.metadata,
            tensors: header.tensors,
            by_name,
        })
    }

    /// Where the file was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file itself.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Which file it was when it was opened, and when that had last changed.
    #[must_use]
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Whether nobody has written to the file since it was opened, as far as the system says.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        let now = self.file.metadata().map(|meta| Stamp::of(&meta));
        now.is_ok_and(|now| now.same_content(&self.stamp))
    }

    /// Size of the whole file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Offset at which tensor data begins, padding counted: the size of the header.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    /// All tensors, in the order of the file's table.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of that name, if the file has it.
    #[must_use]
    pub fn find_tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).map(|&at| &self.tensors[at])
    }

    /// The tensor of that name.
    ///
    /// # Errors
    /// When the file has none.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo, GgufError> {
        self.find_tensor(name)
            .ok_or_else(|| GgufError::MissingTensor {
                path: self.path.clone(),
                name: name.to_owned(),
            })
    }

    /// Reads exactly the bytes of one tensor, in the file's own format, all of whose weights are finite.
    ///
    /// # Errors
    /// When the file cannot be read or has become shorter since it was opened; when weights are NaN or infinite.
    pub fn read_tensor(&self, tensor: &TensorInfo) -> Result<Vec<u8>, GgufError> {
        let unread = |source: std::io::Error| GgufError::ReadTensor {
            path: self.path.clone(),
            name: tensor.name.as_str().into(),
            bytes: tensor.bytes,
            offset: tensor.offset,
            source,
        };
        // The range was inside the file at opening; a file cut since then must not cost memory either.
        let size = self.file.metadata().map_err(unread)?.len();
        if tensor
            .offset
            .checked_add(tensor.bytes)
            .is_none_or(|end| end > size)
        {
            let damage = Damage::TensorBeyondEnd {
                name: tensor.name.clone(),
                offset: tensor.offset,
                bytes: tensor.bytes,
                file_bytes: size,
            };
            return Err(GgufError::Damaged {
                path: self.path.clone(),
                damage: Box::new(damage),
            });
        }
        let len = usize::try_from(tensor.bytes)
            .map_err(|_| unread(std::io::ErrorKind::OutOfMemory.into()))?;
        let mut data = Vec::new();
        if data.try_reserve_exact(len).is_err() {
            return Err(unread(std::io::ErrorKind::OutOfMemory.into()));
        }
        data.resize(len, 0);
        // In pieces that stay in the cache, so that looking at them costs no second way to memory.
        let piece = finite::piece_bytes(tensor.format);
        let mut offset = tensor.offset;
        for piece in data.chunks_mut(piece) {
            self.file.read_exact_at(piece, offset).map_err(unread)?;
            if let Some(block) = finite::first_not(tensor.format, piece) {
                let before = offset - tensor.offset + block as u64;
                return Err(self.not_finite(tensor, before));
            }
            offset += piece.len() as u64;
        }
        Ok(data)
    }

    /// The block that begins so many bytes into a tensor is no number.
    fn not_finite(&self, tensor: &TensorInfo, bytes: u64) -> GgufError {
        let format = tensor.format;
        let weight = bytes / format.block_bytes() as u64 * format.block_weights() as u64;
        let columns = tensor.shape.first().map_or(1, |&n| n.max(1) as u64);
        let place = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        GgufError::NotFinite {
            path: self.path.clone(),
            name: tensor.name.as_str().into(),
            part: match format.block_weights() {
                1 => "the weight",
                _ => "the scale of the block",
            },
            row: place(weight / columns),
            column: place(weight % columns),
        }
    }

    /// Number of weights in all tensors.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        // Tensors lie apart in the file and no format packs eight weights into a byte: no overflow.
        self.tensors.iter().map(TensorInfo::elements).sum()
    }

    /// The format that holds the most weights; `None` for a file without tensors.
    #[must_use]
    pub fn dominant_format(&self) -> Option<Format> {
        let mut counts: Vec<(Format, u64)> = Vec::new();
        for tensor in &self.tensors {
            match counts
                .iter_mut()
                .find(|(format, _)| *format == tensor.format)
            {
                Some((_, count)) => *count += tensor.elements(),
                None => counts.push((tensor.format, tensor.elements())),
            }
        }
        counts
            .into_iter()
            .max_by_key(|&(_, count)| count)
            .map(|(format, _)| format)
    }
}
