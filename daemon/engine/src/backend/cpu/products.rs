//! Products of rows with matrices, their outputs shared out among the threads.

use std::ops::Range;

use super::Compute;
use super::rows::{AddTo, Gate};
use crate::backend::Activation;
use tandem_kernels::{OutView, PackedMatrix, QuantizedRows};

const TILE: usize = PackedMatrix::TILE;
/// Chunks per thread that even out the threads' ends.
const CHUNKS_PER_THREAD: usize = 4;
/// Multiplications that are worth a chunk of their own: about a microsecond's.
const LEAST: usize = 1 << 15;
/// Floats of rows that one thread quantizes faster than several do.
const SERIAL: usize = 8192;

/// Quantizes the rows that the matrices will be multiplied with.
#[expect(unsafe_code, reason = "threads quantize different rows")]
pub(super) fn quantize<'x>(
    compute: &Compute,
    rows: usize,
    row: impl Fn(usize) -> &'x [f32] + Sync,
    matrices: &[&PackedMatrix],
    into: &mut QuantizedRows,
) {
    let inputs = matrices.first().map_or(0, |matrix| matrix.inputs());
    let floats = matrices.iter().any(|matrix| matrix.format().takes_floats());
    into.reset(rows, inputs, floats);
    let writer = into.writer();
    compute.rows(rows, inputs, SERIAL, |at| {
        // SAFETY: every row is taken once, and read after this stage.
        unsafe { writer.quantize_row(at, row(at)) };
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
pub(super) fn multiply<const N: usize>(
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

/// `activation(x · gateᵀ) · (x · upᵀ)` into the first of the results; the second is scratch.
#[expect(unsafe_code, reason = "threads write different outputs")]
pub(super) fn multiply_gated(
    compute: &Compute,
    x: &QuantizedRows,
    [gate, up]: [&PackedMatrix; 2],
    activation: Activation,
    results: [&mut [f32]; 2],
) {
    // The two go by the same tiles, so that a thread has both factors of its outputs.
    let share = share(compute, gate.tiles(), 2 * x.inputs(), x.rows());
    let [gates, ups] = views(results, [gate, up]);
    let isa = compute.isa;
    compute.pool.run(gate.tiles().div_ceil(share), |chunk| {
        let tiles = chunk * share..((chunk + 1) * share).min(gate.tiles());
        let columns = outputs(gate, &tiles);
        // SAFETY: chunks have different outputs.
        let mut gates = unsafe { gates.alias(columns.clone()) };
        // SAFETY: as above.
        let mut ups = unsafe { ups.alias(columns) };
        gate.multiply(x, tiles.clone(), &mut gates);
        up.multiply(x, tiles, &mut ups);
        for row in 0..x.rows() {
            isa.run(Gate {
                gate: gates.row_mut(row),
                up: ups.row_mut(row),
                activation,
            });
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
