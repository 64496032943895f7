//! What can be wrong with a model file.

use std::io;
use std::path::PathBuf;

/// Why a model file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file could not be opened.
    #[error("cannot open the model file {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path names a directory or a device.
    #[error("{} is not a regular file: name a .gguf file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Reading the header failed.
    #[error("cannot read the header of {} at offset {offset}", path.display())]
    ReadHeader {
        /// The file.
        path: PathBuf,
        /// Bytes from the start of the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Reading a tensor failed.
    #[error("cannot read tensor `{name}` ({bytes} bytes at offset {offset}) of {}", path.display())]
    ReadTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: Box<str>,
        /// Size of the tensor.
        bytes: u64,
        /// Bytes from the start of the file.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error(
        "{} is not a GGUF model: it starts with \"{}\" where \"GGUF\" was expected; check the file's name",
        path.display(), start.escape_ascii()
    )]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// Its first bytes, four where it has as many.
        start: Vec<u8>,
    },
    /// A version of the container that we do not read.
    #[error(
        "{} is GGUF version {version}, and versions 2 and 3 can be read: pull a newer conversion of the model",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version it states.
        version: u32,
    },
    /// The file was written for a big-endian machine.
    #[error("{} is a big-endian GGUF file: pull the ordinary little-endian one", path.display())]
    BigEndian {
        /// The file.
        path: PathBuf,
    },
    /// A tensor's format is not one we compute with.
    #[error(
        "tensor `{name}` of {} has format {number}, which is not supported: pull the model as one of {SUPPORTED}",
        path.display()
    )]
    UnsupportedFormat {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// Number of the format in the file.
        number: u32,
    },
    /// The file contradicts itself or its size.
    #[error("{} is damaged or incomplete, pull it again: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        damage: Box<Damage>,
    },
    /// Weights that are no numbers.
    #[error(
        "tensor `{name}` of {} holds NaN or infinity: {part} at row {row}, column {column} is not finite; the file is damaged \
         or was converted wrongly, pull it again or choose another",
        path.display()
    )]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: Box<str>,
        /// What it is: a weight, or the scale of a block that begins there.
        part: &'static str,
        /// Which output, from 0; all extents but the innermost counted through.
        row: u32,
        /// Which input, from 0.
        column: u32,
    },
    /// A key that the caller needs is absent.
    #[error("{} has no metadata key `{key}`: it is not a complete language model", path.display())]
    MissingKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
    },
    /// A key holds something else than the caller needs.
    #[error("metadata key `{key}` of {} holds {found} where {expected} was expected", path.display())]
    WrongType {
        /// The file.
        path: PathBuf,
        /// The key.
        key: Box<str>,
        /// What was asked for.
        expected: &'static str,
        /// What is there.
        found: Box<str>,
    },
    /// A tensor that the caller needs is absent.
    #[error("{} has no tensor `{name}`: its architecture is not what it states", path.display())]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
}

const SUPPORTED: &str = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ1_S to IQ4_XS, TQ1_0, TQ2_0, MXFP4";

/// A contradiction that shows a file to be damaged, incomplete or hostile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// Something would reach past the end of the file.
    #[error("{what} needs {needed_bytes} bytes at offset {offset}, but {available_bytes} are left")]
    BeyondEnd {
        /// What was being read.
        what: String,
        /// Where it starts.
        offset: u64,
        /// The least it takes.
        needed_bytes: u64,
        /// What the file has from there.
        available_bytes: u64,
    },
    /// A count or length beyond what any model has.
    #[error("{what} is {value}, more than the {limit} that any model has")]
    TooMany {
        /// What was counted.
        what: String,
        /// The number in the file.
        value: u64,
        /// The most we accept.
        limit: u64,
    },
    /// A name that is not UTF-8.
    #[error("{what} at offset {offset} is not UTF-8")]
    NotUtf8 {
        /// What was being read.
        what: String,
        /// Where it starts.
        offset: u64,
    },
    /// A value type that GGUF does not define.
    #[error("{what} has value type {number}, and types end at 12")]
    UnknownType {
        /// What was being read.
        what: String,
        /// The number in the file.
        number: u32,
    },
    /// A truth value that is neither 0 nor 1.
    #[error("{what} is {value} where true (1) or false (0) was expected")]
    NotABool {
        /// What was being read.
        what: String,
        /// The byte in the file.
        value: u8,
    },
    /// Arrays of arrays of arrays, beyond reason.
    #[error("{what} nests arrays deeper than {limit}")]
    TooDeep {
        /// What was being read.
        what: String,
        /// The most we accept.
        limit: usize,
    },
    /// Two entries share a name.
    #[error("{what} `{name}` occurs twice")]
    Duplicate {
        /// "metadata key" or "tensor".
        what: &'static str,
        /// The name.
        name: String,
    },
    /// An alignment that is no power of two.
    #[error("the alignment is {value}, which is not a power of two up to {limit}")]
    Alignment {
        /// The number in the file.
        value: u64,
        /// The most we accept.
        limit: u64,
    },
    /// A tensor with no dimensions, too many, an empty one, or more elements than can be counted.
    #[error("tensor `{name}` has the impossible shape {shape:?}")]
    Shape {
        /// The tensor.
        name: String,
        /// As in the file: innermost dimension first.
        shape: Vec<u64>,
    },
    /// Rows that are no whole number of quantization blocks.
    #[error(
        "rows of tensor `{name}` have {row} elements, which is no multiple of its block of {block}"
    )]
    PartialBlock {
        /// The tensor.
        name: String,
        /// Elements of its innermost dimension.
        row: u64,
        /// Elements of a block.
        block: u64,
    },
    /// A tensor that does not start at a multiple of the alignment.
    #[error(
        "tensor `{name}` starts {offset} bytes into the data, which is no multiple of {alignment}"
    )]
    Misaligned {
        /// The tensor.
        name: String,
        /// Relative to the start of the data.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// A tensor that reaches past the end of the file.
    #[error(
        "tensor `{name}` needs {bytes} bytes at offset {offset}, but the file has {file_bytes} bytes"
    )]
    TensorBeyondEnd {
        /// The tensor.
        name: String,
        /// Bytes from the start of the file; relative to the data where even the sum overflows.
        offset: u64,
        /// Size of the tensor.
        bytes: u64,
        /// Size of the file.
        file_bytes: u64,
    },
    /// Two tensors share bytes.
    #[error("tensors `{first}` and `{second}` overlap at offset {offset}")]
    Overlap {
        /// The tensor that starts first.
        first: String,
        /// The one that starts inside it.
        second: String,
        /// Where it starts.
        offset: u64,
    },
}
