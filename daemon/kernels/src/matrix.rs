//! A packed weight matrix: made from GGUF bytes, read back by row, and multiplied.
#![expect(
    unsafe_code,
    reason = "kernels run on raw pointers into checked ranges"
)]

use super::{
    Format, Isa, OutView, QuantizedRows, SharedBytes,
    block::Fields,
    bytes::{Lines, Storage},
    float,
    isa::Kernels,
    layout::Layout,
    product::Job,
    rows::{ROW_BLOCK, chunk_of},
    size::{PackError, check_len, packed_bytes, row_bytes},
};
use std::ops::Range;

/// A weight matrix \[outputs, inputs\] in the interleaved layout of an instruction set's kernels.
#[derive(Debug)]
pub struct PackedMatrix {
    format: Format,
    isa: Isa,
    outputs: usize,
    inputs: usize,
    bytes: Storage,
    /// None for formats that take floats, whose bytes stay as they are in GGUF.
    kernels: Option<Kernels>,
}

/// Activations that a tile is multiplied with before the next tile's turn: they must stay in a core's own cache.
const SLAB_BYTES: usize = 256 << 10;

impl PackedMatrix {
    /// Outputs per tile, the unit in which work is shared out; the last tile may have fewer.
    pub const TILE: usize = 16;

    /// Packs a GGUF tensor (row-major, `outputs` rows of `inputs` weights) for the running CPU.
    ///
    /// # Errors
    /// [`PackError`] if shape, format and number of bytes do not fit together.
    pub fn pack(
        format: Format,
        outputs: usize,
        inputs: usize,
        gguf: &[u8],
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::pack_for(super::isa(), format, outputs, inputs, gguf)
    }

    /// [`pack`](Self::pack) for another instruction set that the CPU has.
    ///
    /// # Errors
    /// As [`pack`](Self::pack), and if the CPU lacks the set.
    pub fn pack_for(
        isa: Isa,
        format: Format,
        outputs: usize,
        inputs: usize,
        gguf: &[u8],
    ) -> Result<PackedMatrix, PackError> {
        let row = row_bytes(format, outputs, inputs)?;
        check_len(format, outputs, inputs, outputs * row, gguf.len())?;
        let packed = packed_bytes(isa, format, outputs, inputs)?;
        let mut bytes = Lines::zeroed(packed).ok_or(PackError::Memory { bytes: packed })?;
        if format.takes_floats() {
            bytes.as_mut_slice().copy_from_slice(gguf);
        } else {
            let (layout, lanes) = (Layout::of(format), isa.lanes());
            let supers = inputs / format.block_weights();
            for (output, row) in gguf.chunks_exact(row.max(1)).enumerate() {
                let strip =
                    &mut bytes.as_mut_slice()[output / lanes * supers * layout.bytes() * lanes..];
                let supers = strip.chunks_exact_mut(layout.bytes() * lanes);
                for (block, into) in row.chunks_exact(format.block_bytes()).zip(supers) {
                    layout.put(&Fields::read(format, block), lanes, output % lanes, into);
                }
            }
        }
        PackedMatrix::with_bytes(isa, format, outputs, inputs, Storage::Owned(bytes))
    }

    /// A matrix over bytes that [`as_bytes`](Self::as_bytes) gave for `isa`, kept by somebody else: nothing is copied.
    /// They should start at a cache line.
    ///
    /// # Errors
    /// As [`pack_for`](Self::pack_for).
    pub fn from_packed(
        isa: Isa,
        format: Format,
        outputs: usize,
        inputs: usize,
        bytes: SharedBytes,
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::with_bytes(isa, format, outputs, inputs, Storage::Shared(bytes))
    }

    fn with_bytes(
        isa: Isa,
        format: Format,
        outputs: usize,
        inputs: usize,
        bytes: Storage,
    ) -> Result<PackedMatrix, PackError> {
        if !Isa::available().contains(&isa) {
            return Err(PackError::Isa { isa });
        }
        let expected = packed_bytes(isa, format, outputs, inputs)?;
        check_len(format, outputs, inputs, expected, bytes.as_slice().len())?;
        let kernels = (!format.takes_floats()).then(|| isa.kernels(format));
        Ok(PackedMatrix {
            format,
            isa,
            outputs,
            inputs,
            bytes,
            kernels,
        })
    }

    /// The format of the weights.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The instruction set it is packed for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Rows of the matrix: elements of a product.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Columns of the matrix: elements of an activation row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// How many tiles the outputs make.
    pub fn tiles(&self) -> usize {
        self.outputs.div_ceil(Self::TILE)
    }

    /// Size of the packed form, in bytes.
    pub fn bytes(&self) -> usize {
        self.as_bytes().len()
    }

    /// The packed form, for a cache file; see [`from_packed`](Self::from_packed).
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    /// The weights of one output (or of one token, in an embedding) as the GGUF format defines their values.
    ///
    /// # Panics
    /// If `output` is not below [`outputs`](Self::outputs) or `into` has not [`inputs`](Self::inputs) places.
    pub fn dequantize_row(&self, output: usize, into: &mut [f32]) {
        assert!(
            output < self.outputs,
            "output {output} is not below {}",
            self.outputs
        );
        assert_eq!(into.len(), self.inputs, "one place per input");
        let block = self.format.block_weights();
        if self.format.takes_floats() {
            let row = self.inputs / block * self.format.block_bytes();
            return float::decode_row(self.format, &self.as_bytes()[output * row..][..row], into);
        }
        let (layout, lanes) = (Layout::of(self.format), self.isa.lanes());
        let size = layout.bytes() * lanes;
        let strip = &self.as_bytes()[output / lanes * (self.inputs / block) * size..];
        for (into, from) in into.chunks_exact_mut(block).zip(strip.chunks_exact(size)) {
            layout
                .get(lanes, output % lanes, from)
                .values(self.format, into);
        }
    }

    /// Writes the products of all rows of `x` with the outputs of `tiles`. Several threads may do so at a time, each on
    /// its own tiles and window of the result.
    ///
    /// # Panics
    /// If `x` has other [`inputs`](Self::inputs), is quantized for another instruction set, or lacks the floats that
    /// the format takes; if `tiles` reaches beyond [`tiles`](Self::tiles); or if `out` does not hold those outputs of
    /// that many rows.
    pub fn multiply(&self, x: &QuantizedRows, tiles: Range<usize>, out: &mut OutView<'_>) {
        assert!(
            x.inputs() == self.inputs && x.isa() == self.isa,
            "rows and matrix differ in inputs or instruction set"
        );
        assert!(
            tiles.end <= self.tiles(),
            "tiles {tiles:?} of {}",
            self.tiles()
        );
        let outputs = tiles.start * Self::TILE..(tiles.end * Self::TILE).min(self.outputs);
        if x.rows() == 0 || outputs.is_empty() {
            return;
        }
        let window = out.outputs();
        assert!(
            window.start <= outputs.start && outputs.end <= window.end && x.rows() <= out.rows(),
            "outputs {outputs:?} of {} rows, in a window of {window:?} of {} rows",
            x.rows(),
            out.rows()
        );
        let Some(kernels) = &self.kernels else {
            return float::multiply(self.isa, self.format, self.as_bytes(), x, outputs, out);
        };
        let slab = (SLAB_BYTES / (x.blocks() * ROW_BLOCK).max(1)).max(1);
        let mut first = 0;
        while first < x.rows() {
            let last = (first + slab).min(x.rows());
            first = self.multiply_slab(kernels, x, first..last, outputs.clone(), out);
        }
    }

    /// Multiplies the chunks that start within `rows`; returns the row after the last of them.
    fn multiply_slab(
        &self,
        kernels: &Kernels,
        x: &QuantizedRows,
        rows: Range<usize>,
        outputs: Range<usize>,
        out: &mut OutView<'_>,
    ) -> usize {
        let lanes = self.isa.lanes();
        let supers = self.inputs / self.format.block_weights();
        let strip = supers * Layout::of(self.format).bytes() * lanes;
        let mut next = rows.start;
        for first_output in outputs.clone().step_by(lanes) {
            let weights = self.as_bytes()[first_output / lanes * strip..][..strip].as_ptr();
            next = rows.start;
            while next < rows.end {
                let (_, len, _) = chunk_of(x.rows(), next);
                let job = Job {
                    weights,
                    supers,
                    x: x.chunk_ptr(next),
                    out: out.at(next, first_output),
                    stride: out.stride(),
                    outputs: lanes.min(outputs.end - first_output),
                };
                // SAFETY: the CPU has the set (`with_bytes`); the strip is in bounds, the chunk is x's own, and
                // `multiply` checked that the window holds these rows and outputs.
                unsafe { kernels[len - 1](&job) };
                next += len;
            }
        }
        next
    }
}
