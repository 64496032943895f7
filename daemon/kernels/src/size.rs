//! How large a matrix is, as GGUF and packed, and the errors of bytes that do not fit.

use super::{Format, Isa, layout::Layout};

/// Why bytes are no matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// Rows do not consist of whole blocks.
    #[error("{inputs} inputs per row are not a multiple of {format:?}'s block of {block} weights")]
    Inputs {
        /// The matrix's format.
        format: Format,
        /// Weights per row.
        inputs: usize,
        /// Weights per block.
        block: usize,
    },
    /// More or fewer bytes than the shape takes.
    #[error(
        "{outputs} × {inputs} weights of {format:?} take {expected} bytes, but {found} were given"
    )]
    Bytes {
        /// The matrix's format.
        format: Format,
        /// Rows of the matrix.
        outputs: usize,
        /// Weights per row.
        inputs: usize,
        /// What the shape takes.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// The number of bytes overflows.
    #[error("a matrix of {outputs} × {inputs} weights is larger than any memory")]
    TooLarge {
        /// Rows of the matrix.
        outputs: usize,
        /// Weights per row.
        inputs: usize,
    },
    /// The system has no memory left.
    #[error(
        "there are no {bytes} bytes of memory for it; free memory, or raise the limits of the process"
    )]
    Memory {
        /// As asked for.
        bytes: usize,
    },
    /// The instruction set is not the CPU's.
    #[error("this CPU has no {isa} instructions; pack for one of `Isa::available()`")]
    Isa {
        /// As asked for.
        isa: Isa,
    },
}

/// Bytes of a GGUF row, once the whole matrix is known to be countable.
pub(super) fn row_bytes(format: Format, outputs: usize, inputs: usize) -> Result<usize, PackError> {
    let block = format.block_weights();
    if !inputs.is_multiple_of(block) {
        return Err(PackError::Inputs {
            format,
            inputs,
            block,
        });
    }
    let row = (inputs / block).checked_mul(format.block_bytes());
    row.filter(|row| row.checked_mul(outputs).is_some())
        .ok_or(PackError::TooLarge { outputs, inputs })
}

/// Bytes of the packed form: whole strips, or GGUF's own for formats that take floats.
pub(super) fn packed_bytes(
    isa: Isa,
    format: Format,
    outputs: usize,
    inputs: usize,
) -> Result<usize, PackError> {
    let row = row_bytes(format, outputs, inputs)?;
    if format.takes_floats() {
        return Ok(row * outputs);
    }
    let row = (inputs / format.block_weights()).checked_mul(Layout::of(format).bytes());
    let padded = outputs.checked_next_multiple_of(isa.lanes());
    row.zip(padded)
        .and_then(|(row, padded)| row.checked_mul(padded))
        .ok_or(PackError::TooLarge { outputs, inputs })
}

/// Compares the number of bytes with what the shape takes.
pub(super) fn check_len(
    format: Format,
    outputs: usize,
    inputs: usize,
    expected: usize,
    found: usize,
) -> Result<(), PackError> {
    if expected == found {
        Ok(())
    } else {
        Err(PackError::Bytes {
            format,
            outputs,
            inputs,
            expected,
            found,
        })
    }
}
