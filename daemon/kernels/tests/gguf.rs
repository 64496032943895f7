//! What the kernels read in GGUF blocks is what candle, an independent reader of the format, reads.

use candle_core::{
    Device,
    quantized::{GgmlDType, QStorage, QTensor},
};
use std::borrow::Cow;
use tandem_kernels::check::blocks::{Random, random_blocks};
use tandem_kernels::{Format, Isa, PackedMatrix};

/// `None` for what candle cannot read; `rare.rs` has those.
fn candle_type(format: Format) -> Option<GgmlDType> {
    Some(match format {
        Format::F32 => GgmlDType::F32,
        Format::F16 => GgmlDType::F16,
        Format::BF16 => GgmlDType::BF16,
        Format::Q4_0 => GgmlDType::Q4_0,
        Format::Q4_1 => GgmlDType::Q4_1,
        Format::Q5_0 => GgmlDType::Q5_0,
        Format::Q5_1 => GgmlDType::Q5_1,
        Format::Q8_0 => GgmlDType::Q8_0,
        Format::Q2K => GgmlDType::Q2K,
        Format::Q3K => GgmlDType::Q3K,
        Format::Q4K => GgmlDType::Q4K,
        Format::Q5K => GgmlDType::Q5K,
        Format::Q6K => GgmlDType::Q6K,
        _ => return None,
    })
}

#[test]
fn rows_come_back_as_the_format_defines_them() {
    let (outputs, inputs) = (21, 768);
    for format in Format::ALL {
        let Some(candle_type) = candle_type(format) else {
            continue;
        };
        let weights = random_blocks(format, outputs * inputs, &mut Random(format as u64));
        let storage = QStorage::from_data(Cow::Owned(weights.clone()), &Device::Cpu, candle_type);
        let tensor = QTensor::new(storage.expect("whole blocks"), (outputs, inputs));
        let tensor = tensor.and_then(|tensor| tensor.dequantize(&Device::Cpu));
        let expected: Vec<Vec<f32>> = tensor
            .and_then(|tensor| tensor.to_vec2())
            .expect("candle reads its own formats");
        for isa in Isa::available() {
            let matrix = PackedMatrix::pack_for(isa, format, outputs, inputs, &weights)
                .expect("the shape is right");
            let mut row = vec![f32::NAN; inputs];
            for (output, expected) in expected.iter().enumerate() {
                matrix.dequantize_row(output, &mut row);
                let same = row.iter().zip(expected).all(|(a, b)| a == b);
                assert!(
                    same,
                    "{isa} {format:?}, output {output}: {:?}, not {:?}",
                    &row[..4],
                    &expected[..4]
                );
            }
        }
    }
}
