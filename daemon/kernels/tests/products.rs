//! The kernels of the `cpu` backend: right on every instruction set of the machine, and batch-invariant to the bit.

use proptest::prelude::*;
use tandem_kernels::check::blocks::{self, Random, random_blocks};
use tandem_kernels::{Format, Isa, OutView, PackError, PackedMatrix, QuantizedRows};

/// Of Σ |weight · activation|; the largest error seen is 8e-8, half a unit in the last place of the sums.
const TOLERANCE: f64 = 5e-7;
/// For few terms, or terms all alike: a centred sum and a minimum that nearly cancel are then much larger than these.
const LOOSE: f64 = 3e-6;

struct Case {
    matrix: PackedMatrix,
    rows: Vec<Vec<f32>>,
}

impl Case {
    fn new(
        isa: Isa,
        format: Format,
        rows: usize,
        outputs: usize,
        inputs: usize,
        seed: u64,
    ) -> Case {
        let mut random = Random(seed);
        let weights = random_blocks(format, outputs * inputs, &mut random);
        let matrix = PackedMatrix::pack_for(isa, format, outputs, inputs, &weights)
            .expect("the shape is right");
        let rows = (0..rows)
            .map(|_| (0..inputs).map(|_| random.normal()).collect())
            .collect();
        Case { matrix, rows }
    }

    fn quantize(&self, rows: std::ops::Range<usize>) -> QuantizedRows {
        let mut x = QuantizedRows::for_isa(self.matrix.isa());
        x.reset(
            rows.len(),
            self.matrix.inputs(),
            self.matrix.format().takes_floats(),
        );
        for (place, row) in self.rows[rows].iter().enumerate() {
            x.quantize_row(place, row);
        }
        x
    }

    /// All products of some rows in one call.
    fn multiply(&self, rows: std::ops::Range<usize>) -> Vec<f32> {
        let mut out = vec![f32::NAN; rows.len() * self.matrix.outputs()];
        let mut view = OutView::new(&mut out, self.matrix.outputs());
        self.matrix
            .multiply(&self.quantize(rows), 0..self.matrix.tiles(), &mut view);
        out
    }

    /// The largest error against sums in f64, relative to the sum of magnitudes.
    fn error(&self) -> f64 {
        let (inputs, outputs) = (self.matrix.inputs(), self.matrix.outputs());
        let x = self.quantize(0..self.rows.len());
        let out = self.multiply(0..self.rows.len());
        let (mut weights, mut activations) = (vec![0f32; inputs], vec![0f32; inputs]);
        let mut worst = 0f64;
        for output in 0..outputs {
            self.matrix.dequantize_row(output, &mut weights);
            for (r, row) in self.rows.iter().enumerate() {
                if self.matrix.format().takes_floats() {
                    activations.copy_from_slice(row);
                } else {
                    x.dequantize_row(r, &mut activations);
                }
                let terms = weights
                    .iter()
                    .zip(&activations)
                    .map(|(&w, &x)| f64::from(w) * f64::from(x));
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| {
                    (sum + term, size + term.abs())
                });
                let error = (f64::from(out[r * outputs + output]) - sum).abs() / size.max(1e-30);
                worst = if error > worst || error.is_nan() {
                    error
                } else {
                    worst
                };
            }
        }
        worst
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn each(mut check: impl FnMut(Isa, Format)) {
    for isa in Isa::available() {
        for format in Format::ALL {
            check(isa, format);
        }
    }
}

/// Emulated CPUs (`.ci/check-arm`) announce what they have, so that no kernel goes untested in silence.
#[test]
fn the_cpu_has_the_instruction_sets_that_were_announced() {
    if let Ok(announced) = std::env::var("TANDEM_TEST_ISAS") {
        let found: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
        assert_eq!(found.join(" "), announced);
    }
}

#[test]
fn products_agree_with_sums_in_f64() {
    const OUTPUTS: [usize; 17] = [
        1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 33, 40, 41, 47, 48, 49, 63,
    ];
    each(|isa, format| {
        let mut worst = 0f64;
        for (rows, outputs) in (1..=17).zip(OUTPUTS) {
            let error = Case::new(isa, format, rows, outputs, 512, rows as u64).error();
            assert!(
                error < TOLERANCE,
                "{isa} {format:?}, {rows} rows, {outputs} outputs: error {error:.1e}"
            );
            worst = worst.max(error);
        }
        eprintln!("{isa} {format:?}: largest error {worst:.1e}");
    });
}

#[test]
fn a_nan_or_an_infinity_is_not_lost() {
    each(|isa, format| {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut case = Case::new(isa, format, 2, 5, 256, 17);
            case.rows[1][40] = bad;
            let out = case.multiply(0..2);
            assert!(
                out[..5].iter().all(|value| value.is_finite()),
                "{isa} {format:?}"
            );
            assert!(
                out[5..].iter().all(|value| !value.is_finite()),
                "{isa} {format:?}: {out:?}"
            );
        }
    });
}

#[test]
fn a_row_has_the_same_bits_in_any_company() {
    each(|isa, format| {
        let case = Case::new(isa, format, 17, 19, 512, 7);
        let alone: Vec<f32> = (0..17)
            .flat_map(|row| case.multiply(row..row + 1))
            .collect();
        for count in 2..=17 {
            let first = (17 - count) / 2;
            let together = case.multiply(first..first + count);
            assert_eq!(
                bits(&together),
                bits(&alone[first * 19..][..count * 19]),
                "{isa} {format:?}, {count} rows"
            );
        }
    });
}

#[test]
fn a_long_prompt_has_the_same_bits_in_slabs() {
    each(|isa, format| {
        let case = Case::new(isa, format, 130, 33, 2304, 11);
        let all = case.multiply(0..130);
        for row in [0, 63, 64, 101, 129] {
            assert_eq!(
                bits(&case.multiply(row..row + 1)),
                bits(&all[row * 33..][..33]),
                "{isa} {format:?}, row {row}"
            );
        }
    });
}

#[test]
fn threads_on_tiles_of_their_own_give_the_same_bits() {
    each(|isa, format| {
        let case = Case::new(isa, format, 5, 57, 256, 13);
        let (expected, x) = (case.multiply(0..5), case.quantize(0..5));
        let mut out = vec![f32::NAN; 5 * 57];
        let (mut left, mut right) = OutView::new(&mut out, 57).split_at(2 * PackedMatrix::TILE);
        std::thread::scope(|scope| {
            scope.spawn(|| case.matrix.multiply(&x, 0..2, &mut left));
            scope.spawn(|| case.matrix.multiply(&x, 2..4, &mut right));
        });
        assert_eq!(bits(&out), bits(&expected), "{isa} {format:?}");
    });
}

#[test]
fn the_largest_quants_do_not_overflow() {
    each(|isa, format| {
        for (byte, x) in [
            (255, 1.0),
            (255, -1.0),
            (0, 1.0),
            (0x80, -1.0),
            (0x80, 1.0),
            (127, 1.0),
        ] {
            let mut case = Case::new(isa, format, 3, 17, 256, 5);
            let mut weights = vec![byte; 17 * 256 / format.block_weights() * format.block_bytes()];
            blocks::set_scales(format, &mut weights, &mut Random(3));
            case.matrix =
                PackedMatrix::pack_for(isa, format, 17, 256, &weights).expect("the shape is right");
            case.rows.iter_mut().flatten().for_each(|value| *value = x);
            let error = case.error();
            assert!(
                error < LOOSE,
                "{isa} {format:?}, bytes {byte}, activations {x}: error {error:.1e}"
            );
        }
    });
}

#[test]
fn quantized_rows_stay_within_half_a_step() {
    for isa in Isa::available() {
        let mut x = QuantizedRows::for_isa(isa);
        let mut random = Random(21);
        for inputs in [32, 40, 576] {
            x.reset(3, inputs, false);
            let mut row: Vec<f32> = (0..inputs).map(|_| random.normal()).collect();
            row[..32].fill(0.0);
            let mut back = vec![f32::NAN; inputs];
            x.quantize_row(1, &row);
            x.dequantize_row(1, &mut back);
            for (row, back) in row.chunks(32).zip(back.chunks(32)) {
                let step = row.iter().fold(0f32, |most, value| most.max(value.abs())) / 127.0;
                assert!(
                    row.iter()
                        .zip(back)
                        .all(|(a, b)| (a - b).abs() <= step * 0.50001),
                    "{isa}"
                );
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused_with_numbers() {
    let inputs = PackedMatrix::pack(Format::Q4K, 2, 288, &[0; 324])
        .expect_err("288 is not a multiple of 256");
    assert_eq!(
        inputs,
        PackError::Inputs {
            format: Format::Q4K,
            inputs: 288,
            block: 256
        }
    );
    let bytes = PackedMatrix::pack(Format::Q8_0, 2, 64, &[0; 135]).expect_err("a byte is missing");
    assert_eq!(
        bytes.to_string(),
        "2 × 64 weights of Q8_0 take 136 bytes, but 135 were given"
    );
    let large =
        PackedMatrix::pack(Format::F32, usize::MAX / 2, 1 << 40, &[]).expect_err("no such memory");
    assert!(matches!(large, PackError::TooLarge { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_shape_is_right_and_invariant(
        which in 0..Format::ALL.len(), rows in 1usize..40, outputs in 1usize..70, blocks in 1usize..6, seed: u64,
    ) {
        for isa in Isa::available() {
            let format = Format::ALL[which];
            let case = Case::new(isa, format, rows, outputs, blocks * format.block_weights().max(32), seed);
            prop_assert!(case.error() < LOOSE);
            let row = seed as usize % rows;
            let all = case.multiply(0..rows);
            prop_assert_eq!(bits(&case.multiply(row..row + 1)), bits(&all[row * outputs..][..outputs]));
        }
    }
}
