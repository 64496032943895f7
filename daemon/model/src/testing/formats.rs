//! Models of random weights in any format, each with the floats that its weights stand for.

use tandem_kernels::check::blocks::{Random, random_blocks, scale_blocks};
use tandem_kernels::{Format, PackedMatrix};

use super::TinyModel;

/// How the matrices of a random model are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weights {
    /// As blocks of their formats.
    Blocks,
    /// As the floats that the blocks stand for, each off by this part of itself on average.
    Floats(f32),
}

/// Writes a model whose matrices are random blocks, each in the format that `format` chooses by its name: the same model
/// however it is written. Norms and biases are far enough from 1 and 0 to be missed.
///
/// # Panics
/// If a format's block does not divide a matrix's inputs.
pub fn in_formats(
    model: &TinyModel,
    vocabulary: usize,
    format: impl Fn(&str) -> Format,
    written: Weights,
) -> Vec<u8> {
    let (mut random, mut noise) = (Random(model.seed), Random(!model.seed));
    model.gguf_of(vocabulary, |name, shape| {
        let [inputs, outputs] = *shape else {
            let middle = if name.ends_with(".bias") { 0.0 } else { 1.0 };
            let values = (0..shape.iter().product()).map(|_| middle + 0.3 * random.normal());
            return (Format::F32, bytes(values));
        };
        let format = format(name);
        let (blocks, weights) = random_matrix(format, outputs, inputs, &mut random);
        match written {
            Weights::Blocks => (format, blocks),
            Weights::Floats(off) => {
                let weights = weights.iter().map(|x| x * (1.0 + off * noise.normal()));
                (Format::F32, bytes(weights))
            }
        }
    })
}

/// Returns random blocks of a matrix `[outputs, inputs]` whose products are about as large as what they take, and the
/// weights that the blocks stand for.
///
/// # Panics
/// If the format's block does not divide the inputs.
pub fn random_matrix(
    format: Format,
    outputs: usize,
    inputs: usize,
    random: &mut Random,
) -> (Vec<u8>, Vec<f32>) {
    let count = outputs * inputs;
    let mut blocks = random_blocks(format, count, random);
    let squares: f32 = weights(format, outputs, inputs, &blocks)
        .iter()
        .map(|weight| weight * weight)
        .sum();
    scale_blocks(
        format,
        &mut blocks,
        (outputs as f32 / squares.max(f32::MIN_POSITIVE)).sqrt(),
    );
    let weights = weights(format, outputs, inputs, &blocks);
    (blocks, weights)
}

fn weights(format: Format, outputs: usize, inputs: usize, blocks: &[u8]) -> Vec<f32> {
    let matrix = PackedMatrix::pack(format, outputs, inputs, blocks).expect("a sound shape");
    let mut weights = vec![0.0; outputs * inputs];
    for (output, row) in weights.chunks_mut(inputs).enumerate() {
        matrix.dequantize_row(output, row);
    }
    weights
}

fn bytes(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(f32::to_le_bytes).collect()
}
