//! Rows of activations that are quantized part by part.
#![expect(unsafe_code, reason = "threads write parts through an unsafe function")]

use tandem_kernels::check::blocks::{Random, random_blocks};
use tandem_kernels::{Format, Isa, OutView, PackedMatrix, QuantizedRows};

const OUTPUTS: usize = 16;

fn multiply(matrix: &PackedMatrix, x: &QuantizedRows) -> Vec<u32> {
    let mut out = vec![f32::NAN; x.rows() * OUTPUTS];
    matrix.multiply(x, 0..1, &mut OutView::new(&mut out, OUTPUTS));
    out.into_iter().map(f32::to_bits).collect()
}

#[test]
fn rows_that_come_in_parts_are_the_same() {
    let mut random = Random(5);
    for isa in Isa::available() {
        for format in Format::ALL {
            for (rows, inputs) in [(1, 256), (3, 512), (11, 768)] {
                let weights = random_blocks(format, OUTPUTS * inputs, &mut random);
                let matrix = PackedMatrix::pack_for(isa, format, OUTPUTS, inputs, &weights)
                    .expect("the shape is right");
                let [mut whole, mut parts] = [(); 2].map(|()| QuantizedRows::for_isa(isa));
                whole.reset(rows, inputs, format.takes_floats());
                parts.reset(rows, inputs, format.takes_floats());
                for row in 0..rows {
                    let values: Vec<f32> = (0..inputs).map(|_| random.normal()).collect();
                    whole.quantize_row(row, &values);
                    let writer = parts.writer();
                    for part in [64..192, 0..64, 192..inputs] {
                        // SAFETY: this thread is alone.
                        unsafe { writer.quantize_part(row, part.start, &values[part]) };
                    }
                }
                let (whole, parts) = (multiply(&matrix, &whole), multiply(&matrix, &parts));
                assert_eq!(parts, whole, "{isa} {format:?}, {rows} rows");
            }
        }
    }
}

#[test]
#[should_panic(expected = "whole blocks")]
fn a_part_that_cuts_a_block_is_refused() {
    let mut x = QuantizedRows::new();
    x.reset(1, 64, false);
    // SAFETY: this thread is alone.
    unsafe { x.writer().quantize_part(0, 0, &[1.0; 33]) };
}
