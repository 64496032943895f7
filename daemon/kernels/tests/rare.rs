//! What the kernels read in blocks that candle does not know is what the Python package `gguf` reads, an independent
//! reader of the format; `golden/make_blocks.py` recorded it.
//!
//! All values are a scale of 11 bits times small numbers, which fits into the 24 bits of a float in any order of
//! multiplication: they must be equal, to the bit.

use tandem_kernels::{Format, Isa, PackedMatrix};

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("golden/", $name, ".bin"))
    };
}

const FORMATS: [(Format, &[u8]); 12] = [
    (Format::IQ4NL, golden!("iq4_nl")),
    (Format::IQ4XS, golden!("iq4_xs")),
    (Format::IQ3S, golden!("iq3_s")),
    (Format::IQ3XXS, golden!("iq3_xxs")),
    (Format::IQ2S, golden!("iq2_s")),
    (Format::IQ2XS, golden!("iq2_xs")),
    (Format::IQ2XXS, golden!("iq2_xxs")),
    (Format::IQ1M, golden!("iq1_m")),
    (Format::IQ1S, golden!("iq1_s")),
    (Format::TQ1_0, golden!("tq1_0")),
    (Format::TQ2_0, golden!("tq2_0")),
    (Format::MXFP4, golden!("mxfp4")),
];

#[test]
fn rows_come_back_as_the_gguf_package_reads_them() {
    for (format, golden) in FORMATS {
        let weights = format.block_weights();
        let rows = golden.len() / (format.block_bytes() + 4 * weights);
        let (blocks, expected) = golden.split_at(rows * format.block_bytes());
        assert_eq!(expected.len(), rows * 4 * weights, "{format:?}");
        for isa in Isa::available() {
            let matrix = PackedMatrix::pack_for(isa, format, rows, weights, blocks)
                .expect("the shape is right");
            for (row, expected) in expected.chunks(4 * weights).enumerate() {
                let mut values = vec![f32::NAN; weights];
                matrix.dequantize_row(row, &mut values);
                for (i, (value, &expected)) in values.iter().zip(expected.as_chunks().0).enumerate()
                {
                    let expected = f32::from_le_bytes(expected);
                    assert_eq!(
                        value.to_bits(),
                        expected.to_bits(),
                        "{isa} {format:?}, weight {i} of block {row}: {value}, not {expected}"
                    );
                }
            }
        }
    }
}

/// Between this test and `gguf.rs`, which holds the other formats against candle, none is left out.
#[test]
fn formats_have_numbers_of_their_own() {
    for format in Format::ALL {
        assert_eq!(Format::from_number(format.number()), Some(format));
    }
    assert_eq!(Format::from_number(4), None);
}
