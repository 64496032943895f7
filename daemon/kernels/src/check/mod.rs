//! Holds the kernels of an instruction set against sums in f64 and against themselves, on random numbers: what the tests of
//! this crate show on the machines that they run on, for the machine at hand.

pub mod blocks;

use self::blocks::{Random, random_blocks};
use super::{Format, Isa, OutView, PackError, PackedMatrix, QuantizedRows};

/// The largest error that rounding explains, relative to Σ |weight · activation|; half a unit in the last place of the sums
/// is 6e-8.
pub const TOLERANCE: f64 = 5e-7;

/// Shape of the matrix: whole strips of either width and a part of one.
const OUTPUTS: usize = 41;
const INPUTS: usize = 512;
/// Rows per call: each size of chunk, and several chunks.
const COUNTS: [usize; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 17];

/// How products came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Products {
    /// The largest error against sums in f64, relative to Σ |weight · activation|; NaN where a product is.
    pub error: f64,
    /// Whether every row had the same bits alone and beside others.
    pub batch_invariant: bool,
}

impl Products {
    /// Whether the kernels do what they promise.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        // Not `error > TOLERANCE`, which NaN is not.
        self.error <= TOLERANCE && self.batch_invariant
    }
}

/// Multiplies random weights of `format` with 1 to 17 random rows by the kernels of `isa`. What the weights are is read by
/// plain code from another packing, so that an error in packing shows as well.
///
/// # Errors
/// If the CPU lacks the set.
pub fn products(isa: Isa, format: Format, seed: u64) -> Result<Products, PackError> {
    let mut random = Random(seed);
    let weights = random_blocks(format, OUTPUTS * INPUTS, &mut random);
    let matrix = PackedMatrix::pack_for(isa, format, OUTPUTS, INPUTS, &weights)?;
    let plain = PackedMatrix::pack_for(Isa::Portable, format, OUTPUTS, INPUTS, &weights)?;
    let rows = COUNTS.iter().copied().max().unwrap_or(1);
    let rows: Vec<Vec<f32>> = (0..rows)
        .map(|_| (0..INPUTS).map(|_| random.normal()).collect())
        .collect();
    let alone: Vec<Vec<f32>> = rows
        .iter()
        .map(|row| multiply(&matrix, std::slice::from_ref(row)))
        .collect();
    let batch_invariant = COUNTS.iter().all(|&count| {
        let together = multiply(&matrix, &rows[..count]);
        let alone = alone[..count].iter().flatten();
        together
            .iter()
            .zip(alone)
            .all(|(a, b)| a.to_bits() == b.to_bits())
    });
    Ok(Products {
        error: error(&plain, &rows, &alone, isa),
        batch_invariant,
    })
}

fn quantize(isa: Isa, format: Format, rows: &[Vec<f32>]) -> QuantizedRows {
    let mut x = QuantizedRows::for_isa(isa);
    x.reset(rows.len(), INPUTS, format.takes_floats());
    for (place, row) in rows.iter().enumerate() {
        x.quantize_row(place, row);
    }
    x
}

fn multiply(matrix: &PackedMatrix, rows: &[Vec<f32>]) -> Vec<f32> {
    let x = quantize(matrix.isa(), matrix.format(), rows);
    let mut out = vec![f32::NAN; rows.len() * OUTPUTS];
    let mut view = OutView::new(&mut out, OUTPUTS);
    matrix.multiply(&x, 0..matrix.tiles(), &mut view);
    out
}

/// The largest error of products, by row, against sums in f64.
fn error(weights: &PackedMatrix, rows: &[Vec<f32>], products: &[Vec<f32>], isa: Isa) -> f64 {
    let x = quantize(isa, weights.format(), rows);
    let (mut weight, mut seen) = (vec![0f32; INPUTS], vec![0f32; INPUTS]);
    let mut worst = 0f64;
    for (r, (row, products)) in rows.iter().zip(products).enumerate() {
        if weights.format().takes_floats() {
            seen.copy_from_slice(row);
        } else {
            x.dequantize_row(r, &mut seen);
        }
        for (output, product) in products.iter().enumerate() {
            weights.dequantize_row(output, &mut weight);
            let (mut sum, mut size) = (0f64, 0f64);
            for (&w, &x) in weight.iter().zip(&seen) {
                let term = f64::from(w) * f64::from(x);
                (sum, size) = (sum + term, size + term.abs());
            }
            let error = (f64::from(*product) - sum).abs() / size.max(1e-30);
            if error.is_nan() {
                return error;
            }
            worst = worst.max(error);
        }
    }
    worst
}
