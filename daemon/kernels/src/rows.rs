//! Activations: rows quantized to i8 in blocks of 32, in the order in which the kernels read them.
//!
//! Rows are cut into chunks of at most eight, of sizes that differ by at most one. A chunk holds, per block of 32
//! inputs: the i8 values of its rows (32 bytes each), then per row the f32 scale, the f32 scale · sum, a correction for
//! centred weights over the block, and such corrections over both halves of it. Everything a kernel reads lies at
//! constant distances from one pointer that walks forward.
#![expect(
    unsafe_code,
    reason = "threads share the quantization of rows through a raw pointer"
)]

use super::{Isa, bytes::Lines, layout::BLOCK};
use std::marker::PhantomData;

/// Rows that a kernel takes at once, at most.
pub(super) const CHUNK: usize = 8;
/// Bytes of one row's share of a block.
pub(super) const ROW_BLOCK: usize = BLOCK + 5 * 4;

/// Rows of activations, quantized for one instruction set's kernels; a buffer to be used again and again.
#[derive(Debug)]
pub struct QuantizedRows {
    isa: Isa,
    rows: usize,
    inputs: usize,
    quants: Lines,
    /// Exact values, row by row, while they are kept.
    floats: Vec<f32>,
    keep_floats: bool,
}

impl QuantizedRows {
    /// An empty buffer for the kernels of the running CPU.
    pub fn new() -> QuantizedRows {
        QuantizedRows::for_isa(super::isa())
    }

    /// An empty buffer for the kernels of `isa`.
    pub fn for_isa(isa: Isa) -> QuantizedRows {
        QuantizedRows {
            isa,
            rows: 0,
            inputs: 0,
            quants: Lines::default(),
            floats: Vec::new(),
            keep_floats: false,
        }
    }

    /// Makes room for `rows` rows of `inputs` values, which are unspecified until quantized. With `keep_floats`, rows
    /// also keep their exact values, for matrices whose format [takes floats](super::Format::takes_floats). Allocates
    /// only to grow.
    pub fn reset(&mut self, rows: usize, inputs: usize, keep_floats: bool) {
        (self.rows, self.inputs) = (rows, inputs);
        self.quants.resize(rows * self.blocks() * ROW_BLOCK);
        self.keep_floats = keep_floats;
        if keep_floats && rows * inputs > self.floats.len() {
            self.floats.resize(rows * inputs, 0.0);
        }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values per row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The instruction set whose kernels read these rows.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Quantizes one row: per block of 32, scale = largest magnitude / 127 and values rounded to nearest even.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows) or `values` has not [`inputs`](Self::inputs) of them.
    pub fn quantize_row(&mut self, row: usize, values: &[f32]) {
        // SAFETY: the exclusive borrow leaves no other thread.
        unsafe { self.writer().quantize_row(row, values) }
    }

    /// A handle through which several threads may quantize different rows.
    pub fn writer(&mut self) -> RowWriter<'_> {
        let floats = if self.keep_floats {
            self.floats.as_mut_ptr()
        } else {
            std::ptr::null_mut()
        };
        RowWriter {
            floats,
            quants: self.quants.as_mut_ptr(),
            isa: self.isa,
            rows: self.rows,
            inputs: self.inputs,
            borrow: PhantomData,
        }
    }

    /// The values that the integer kernels see: scale · quant.
    ///
    /// # Panics
    /// If `row` is not below [`rows`](Self::rows) or `into` has not [`inputs`](Self::inputs) places.
    pub fn dequantize_row(&self, row: usize, into: &mut [f32]) {
        assert!(
            row < self.rows && into.len() == self.inputs,
            "row {row} of {} values is not there",
            into.len()
        );
        let (chunk, len, r) = chunk_of(self.rows, row);
        let bytes = self.quants.as_slice();
        for (b, into) in into.chunks_mut(BLOCK).enumerate() {
            let block = &bytes[(chunk * self.blocks() + b * len) * ROW_BLOCK..];
            let scale = &block[len * BLOCK + 4 * r..];
            let scale = f32::from_ne_bytes([scale[0], scale[1], scale[2], scale[3]]);
            for (value, &quant) in into.iter_mut().zip(&block[r * BLOCK..]) {
                *value = scale * f32::from(quant as i8);
            }
        }
    }

    /// The exact values of row `row`, if they were kept.
    pub(super) fn floats(&self, row: usize) -> Option<&[f32]> {
        let place = row * self.inputs..(row + 1) * self.inputs;
        self.keep_floats.then(|| &self.floats[place])
    }

    /// Blocks of 32 per row; the last may be padded with zeros.
    pub(super) fn blocks(&self) -> usize {
        self.inputs.div_ceil(BLOCK)
    }

    /// Where the chunk that starts with row `first` lies.
    pub(super) fn chunk_ptr(&self, first: usize) -> *const u8 {
        self.quants.as_slice()[first * self.blocks() * ROW_BLOCK..].as_ptr()
    }
}

impl Default for QuantizedRows {
    fn default() -> Self {
        QuantizedRows::new()
    }
}

/// The chunk of a row: its first row, its length, and the row's place in it.
pub(super) fn chunk_of(rows: usize, row: usize) -> (usize, usize, usize) {
    let chunks = rows.div_ceil(CHUNK);
    let (short, longer) = (rows / chunks, rows % chunks);
    let boundary = longer * (short + 1);
    let (len, place) = if row < boundary {
        (short + 1, row % (short + 1))
    } else {
        (short, (row - boundary) % short)
    };
    (row - place, len, place)
}

/// Write access to the rows of a [`QuantizedRows`], to be copied to the threads that share the work.
#[derive(Clone, Copy, Debug)]
pub struct RowWriter<'a> {
    quants: *mut u8,
    floats: *mut f32,
    isa: Isa,
    rows: usize,
    inputs: usize,
    borrow: PhantomData<&'a mut QuantizedRows>,
}

// SAFETY: it is a borrow of plain numbers, and `quantize_row` makes its callers keep threads apart.
unsafe impl Send for RowWriter<'_> {}
// SAFETY: as above.
unsafe impl Sync for RowWriter<'_> {}

impl RowWriter<'_> {
    /// Values that are quantized together.
    pub const PART: usize = BLOCK;

    /// [`QuantizedRows::quantize_row`] from any thread.
    ///
    /// # Safety
    /// No two threads write the same row at a time, and none reads it meanwhile.
    ///
    /// # Panics
    /// As [`QuantizedRows::quantize_row`].
    pub unsafe fn quantize_row(&self, row: usize, values: &[f32]) {
        assert_eq!(
            values.len(),
            self.inputs,
            "a row has as many values as were announced"
        );
        // SAFETY: as this method.
        unsafe { self.quantize_part(row, 0, values) };
    }

    /// Quantizes the values of a row from `start` on, a multiple of [`PART`](Self::PART); they reach to the row's end or
    /// to another such multiple.
    ///
    /// # Safety
    /// No two threads write the same part of a row at a time, and none reads the row meanwhile.
    ///
    /// # Panics
    /// If there is no such row, or the values are not whole parts of it.
    pub unsafe fn quantize_part(&self, row: usize, start: usize, values: &[f32]) {
        assert!(row < self.rows, "row {row} is not below {}", self.rows);
        let (end, inputs) = (start + values.len(), self.inputs);
        let whole = |at: usize| at.is_multiple_of(BLOCK);
        assert!(
            whole(start) && (end == inputs || end < inputs && whole(end)),
            "{start}..{end} is not made of whole blocks of a row of {inputs} values"
        );
        let (chunk, len, r) = chunk_of(self.rows, row);
        // SAFETY: `reset` made room for all rows, and this part of the row's share is the caller's alone.
        unsafe {
            let blocks = chunk * self.inputs.div_ceil(BLOCK) + start / BLOCK * len;
            let first = self.quants.add(blocks * ROW_BLOCK);
            self.isa.quantize(values, first, len, r);
            if !self.floats.is_null() {
                std::ptr::copy_nonoverlapping(
                    values.as_ptr(),
                    self.floats.add(row * self.inputs + start),
                    values.len(),
                );
            }
        }
    }
}

/// Quantizes a row into place `r` of a chunk of `len` rows at `chunk`. `PAIRS` chooses the form of the corrections:
/// two i16 (for sums kept in i16 lanes of two products each) or one i32.
///
/// # Safety
/// The chunk has room for the row's blocks, and nobody else touches them.
#[inline(always)]
pub(super) unsafe fn quantize<const PAIRS: bool>(
    values: &[f32],
    chunk: *mut u8,
    len: usize,
    r: usize,
) {
    let (whole, rest) = values.as_chunks::<BLOCK>();
    let mut last = [0f32; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let padded = (!rest.is_empty()).then_some(&last);
    // Plain loops over arrays: compiled for wide vectors, they become a few instructions per block.
    for (b, x) in whole.iter().chain(padded).enumerate() {
        // Magnitudes order like their bits, and a NaN above all: it ends up in the scale, not in silence.
        let mut most = [0u32; 16];
        for part in x.as_chunks::<16>().0 {
            for lane in 0..16 {
                most[lane] = most[lane].max(part[lane].to_bits() & 0x7fff_ffff);
            }
        }
        let most = f32::from_bits(most.into_iter().fold(0, u32::max));
        let scale = most / 127.0;
        let inverse = if most > 0.0 { 127.0 / most } else { 0.0 };
        let mut ints = [0i32; BLOCK];
        for k in 0..BLOCK {
            // Adding 1.5 · 2^23 leaves the nearest integer in the low mantissa bits: no call, on any machine.
            ints[k] = (x[k] * inverse + 12_582_912.0).to_bits() as i32 - 0x4b40_0000;
        }
        let mut quants = [0i8; BLOCK];
        for k in 0..BLOCK {
            quants[k] = ints[k] as i8;
        }
        // Sums by half of the block and by parity of the pair of products that share an i16 lane.
        let mut sums = [[0i32; 2]; 2];
        for half in 0..2 {
            let mut lanes = [0i32; 4];
            for four in ints[16 * half..][..16].as_chunks::<4>().0 {
                for lane in 0..4 {
                    lanes[lane] += four[lane];
                }
            }
            sums[half] = [lanes[0] + lanes[1], lanes[2] + lanes[3]];
        }
        let pair = |factor: i32, [even, odd]: [i32; 2]| {
            if PAIRS {
                u32::from((factor * even) as u16) | ((factor * odd) as u32) << 16
            } else {
                (factor * (even + odd)) as u32
            }
        };
        let whole = [sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]];
        let sum = scale * (whole[0] + whole[1]) as f32;
        // SAFETY: all within the row's share of the block, which the caller vouches for.
        unsafe {
            let block = chunk.add(b * len * ROW_BLOCK);
            block.add(r * BLOCK).cast::<[i8; BLOCK]>().write(quants);
            let side = block.add(len * BLOCK).cast::<u32>();
            side.add(r).write(scale.to_bits());
            side.add(len + r).write(sum.to_bits());
            side.add(2 * len + r).write(pair(-8, whole));
            side.add(3 * len + 2 * r).write(pair(-32, sums[0]));
            side.add(3 * len + 2 * r + 1).write(pair(-32, sums[1]));
        }
    }
}
