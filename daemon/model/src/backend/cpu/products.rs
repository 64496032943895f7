//! Products of rows with matrices: rows quantized once, outputs shared out among the threads.

use std::ops::Range;

use super::compute::Compute;
use super::norm::Norm;
use super::rows::{AddTo, Gate};
use super::{CpuBackend, CpuHidden, CpuMatrix};
use crate::backend::{self, Activation, BackendError, Input, Linear};
use tandem_kernels::{OutView, PackedMatrix, QuantizedRows, RowWriter};

const TILE: usize = PackedMatrix::TILE;
/// Tiles that make whole parts of a quantized row.
const WHOLE: usize = RowWriter::PART / TILE;
/// Chunks per thread that even out the threads' ends.
const CHUNKS_PER_THREAD: usize = 4;
/// Multiplications that are worth a chunk of their own: about a microsecond's.
const LEAST: usize = 1 << 15;

/// Quantized rows, kept for their memory.
#[derive(Debug)]
pub(super) struct Products {
    /// What a product reads.
    input: QuantizedRows,
    /// What the MLP's last product reads, while the others still read `input`.
    inner: QuantizedRows,
}

impl Products {
    pub(super) fn new(isa: tandem_kernels::Isa) -> Self {
        Self {
            input: QuantizedRows::for_isa(isa),
            inner: QuantizedRows::for_isa(isa),
        }
    }

    /// See [`backend::Backend::linear`].
    pub(super) fn linear<const N: usize>(
        &mut self,
        compute: &Compute,
        x: Input<'_, CpuBackend>,
        maps: [Linear<'_, CpuBackend>; N],
    ) -> Result<[CpuHidden; N], BackendError> {
        let matrices = maps.each_ref().map(|map| &map.weight.0);
        let rows = take(compute, x, &matrices, &mut self.input);
        let mut out: [CpuHidden; N] = std::array::from_fn(|_| CpuHidden::default());
        for (out, matrix) in out.iter_mut().zip(matrices) {
            *out = compute.hidden(rows, matrix.outputs())?;
        }
        let biases = maps.map(|map| map.bias.map(|bias| &**bias));
        let results = out.each_mut().map(|out| &mut *out.values);
        multiply(compute, &self.input, matrices, biases, results);
        Ok(out)
    }

    /// See [`backend::Backend::gated_mlp`].
    pub(super) fn gated_mlp(
        &mut self,
        compute: &Compute,
        x: Input<'_, CpuBackend>,
        weights: [&CpuMatrix; 3],
        activation: Activation,
    ) -> Result<CpuHidden, BackendError> {
        let [gate, up, down] = weights.map(|weight| &weight.0);
        let rows = take(compute, x, &[gate, up], &mut self.input);
        let mut inner = compute.hidden(rows, gate.outputs())?;
        let mut factor = compute.hidden(rows, gate.outputs())?;
        let mut out = compute.hidden(rows, down.outputs())?;
        reset(&mut self.inner, rows, &[down]);
        let into = self.inner.writer();
        let scratch = [&mut *inner.values, &mut *factor.values];
        multiply_gated(compute, &self.input, [gate, up], activation, scratch, into);
        compute.arena.give(inner.values);
        compute.arena.give(factor.values);
        let results = [&mut *out.values];
        multiply(compute, &self.inner, [down], [None], results);
        Ok(out)
    }

    /// See [`backend::Backend::logits`].
    pub(super) fn logits(
        &mut self,
        compute: &Compute,
        x: &CpuHidden,
        norm: &backend::Norm<'_, CpuBackend>,
        rows: &[usize],
        head: &PackedMatrix,
        out: &mut [f32],
    ) {
        reset(&mut self.input, rows.len(), &[head]);
        let row = |at: usize| x.row(rows[at]);
        quantize(compute, row, Some(norm.into()), &mut self.input);
        multiply(compute, &self.input, [head], [None], [out]);
    }
}

/// Makes room for rows that the matrices will be multiplied with.
fn reset(into: &mut QuantizedRows, rows: usize, matrices: &[&PackedMatrix]) {
    let inputs = matrices.first().map_or(0, |matrix| matrix.inputs());
    let floats = matrices.iter().any(|matrix| matrix.format().takes_floats());
    into.reset(rows, inputs, floats);
}

/// Quantizes the rows that the matrices will be multiplied with, and says how many there are.
fn take(
    compute: &Compute,
    x: Input<'_, CpuBackend>,
    matrices: &[&PackedMatrix],
    into: &mut QuantizedRows,
) -> usize {
    let (hidden, norm) = match &x {
        Input::Rows(rows) => (rows, None),
        Input::Normed(rows, norm) => (*rows, Some(Norm::from(norm))),
    };
    let rows = hidden.rows();
    reset(into, rows, matrices);
    quantize(compute, |row| hidden.row(row), norm, into);
    if let Input::Rows(rows) = x {
        compute.arena.give(rows.values);
    }
    rows
}

/// Quantizes the rows that `row` gives, normed where there is a norm.
#[expect(unsafe_code, reason = "threads quantize different rows")]
fn quantize<'x>(
    compute: &Compute,
    row: impl Fn(usize) -> &'x [f32] + Sync,
    norm: Option<Norm<'_>>,
    into: &mut QuantizedRows,
) {
    let (rows, inputs, isa) = (into.rows(), into.inputs(), compute.isa);
    let writer = into.writer();
    compute.rows(rows, inputs, |at| match norm {
        // SAFETY: every row is taken once, and read after this stage.
        None => unsafe { writer.quantize_row(at, row(at)) },
        Some(norm) => norm.pieces(isa, row(at), |start, piece| {
            // SAFETY: as above.
            unsafe { writer.quantize_part(at, start, piece) };
        }),
    });
}

/// How many tiles a chunk has, where `tiles` in all take `inputs` inputs each of `rows` rows.
fn share(compute: &Compute, tiles: usize, inputs: usize, rows: usize) -> usize {
    let threads = compute.pool.threads();
    if threads == 1 {
        return tiles.max(1);
    }
    let least = LEAST.div_ceil((TILE * inputs * rows).max(1));
    tiles
        .div_ceil(threads * CHUNKS_PER_THREAD)
        .max(least)
        .max(1)
}

/// The outputs of some tiles.
fn outputs(matrix: &PackedMatrix, tiles: &Range<usize>) -> Range<usize> {
    tiles.start * TILE..(tiles.end * TILE).min(matrix.outputs())
}

/// `x · wᵀ + bias` for each matrix, row-major.
#[expect(unsafe_code, reason = "threads write different outputs")]
fn multiply<const N: usize>(
    compute: &Compute,
    x: &QuantizedRows,
    matrices: [&PackedMatrix; N],
    biases: [Option<&[f32]>; N],
    results: [&mut [f32]; N],
) {
    let tiles = matrices.iter().map(|matrix| matrix.tiles()).sum();
    let share = share(compute, tiles, x.inputs(), x.rows());
    let chunks = matrices.map(|matrix| matrix.tiles().div_ceil(share));
    let results = views(results, matrices);
    let isa = compute.isa;
    compute.pool.run(chunks.iter().sum(), |chunk| {
        let (mut at, mut chunk) = (0, chunk);
        while chunk >= chunks[at] {
            chunk -= chunks[at];
            at += 1;
        }
        let matrix = matrices[at];
        let tiles = chunk * share..((chunk + 1) * share).min(matrix.tiles());
        let columns = outputs(matrix, &tiles);
        // SAFETY: chunks of one matrix have different outputs, and every matrix has a result of its own.
        let mut window = unsafe { results[at].alias(columns.clone()) };
        matrix.multiply(x, tiles, &mut window);
        if let Some(bias) = biases[at] {
            let y = &bias[columns];
            (0..x.rows()).for_each(|row| {
                let x = window.row_mut(row);
                isa.run(AddTo { x, y });
            });
        }
    });
}

/// `activation(x · gateᵀ) · (x · upᵀ)`, quantized as soon as a thread has whole parts of it.
#[expect(unsafe_code, reason = "threads write different outputs")]
fn multiply_gated(
    compute: &Compute,
    x: &QuantizedRows,
    [gate, up]: [&PackedMatrix; 2],
    activation: Activation,
    scratch: [&mut [f32]; 2],
    into: RowWriter<'_>,
) {
    // The two go by the same tiles, so that a thread has both factors of its outputs.
    let share = share(compute, gate.tiles(), 2 * x.inputs(), x.rows()).next_multiple_of(WHOLE);
    let [gates, ups] = views(scratch, [gate, up]);
    let isa = compute.isa;
    compute.pool.run(gate.tiles().div_ceil(share), |chunk| {
        let tiles = chunk * share..((chunk + 1) * share).min(gate.tiles());
        let columns = outputs(gate, &tiles);
        // SAFETY: chunks have different outputs.
        let mut gates = unsafe { gates.alias(columns.clone()) };
        // SAFETY: as above.
        let mut ups = unsafe { ups.alias(columns.clone()) };
        gate.multiply(x, tiles.clone(), &mut gates);
        up.multiply(x, tiles, &mut ups);
        for row in 0..x.rows() {
            let gate = gates.row_mut(row);
            isa.run(Gate {
                gate: &mut *gate,
                up: ups.row_mut(row),
                activation,
            });
            // SAFETY: chunks have different parts of the rows, which are read after this stage.
            unsafe { into.quantize_part(row, columns.start, gate) };
        }
    });
}

/// Views of results, each as wide as its matrix has outputs.
fn views<'a, const N: usize>(
    results: [&'a mut [f32]; N],
    matrices: [&PackedMatrix; N],
) -> [OutView<'a>; N] {
    let mut matrices = matrices.iter();
    results.map(|result| OutView::new(result, matrices.next().map_or(1, |matrix| matrix.outputs())))
}
