//! Models of random weights in any format, each with the floats that its weights stand for.

use tandem_kernels::check::blocks::{Random, random_blocks, scale_blocks};
use tandem_kernels::{Format, PackedMatrix};

use super::TinyModel;

/// Writes a model twice: with matrices of random blocks, each in the format that `format` chooses by its name, and with
/// the floats that these stand for. Norms and biases are far enough from 1 and 0 to be missed.
///
/// # Panics
/// If a format's block does not divide a matrix's inputs.
pub fn in_formats(
    model: &TinyModel,
    vocabulary: usize,
    format: impl Fn(&str) -> Format,
) -> [Vec<u8>; 2] {
    [false, true].map(|as_floats| {
        let mut random = Random(model.seed);
        model.gguf_of(vocabulary, |name, shape| {
            if let [inputs, outputs] = *shape {
                let format = format(name);
                let (blocks, weights) = random_matrix(format, outputs, inputs, &mut random);
                return match as_floats {
                    true => (Format::F32, bytes(&weights)),
                    false => (format, blocks),
                };
            }
            let middle = if name.ends_with(".bias") { 0.0 } else { 1.0 };
            let values = (0..shape.iter().product()).map(|_| middle + 0.3 * random.normal());
            (Format::F32, bytes(&values.collect::<Vec<_>>()))
        })
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

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}
