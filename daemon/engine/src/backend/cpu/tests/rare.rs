//! Formats that candle cannot write: random blocks, held against the same weights as floats.

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use half::f16;
use tandem_kernels::{Format, PackedMatrix};

use super::*;
use crate::backend::BackendError;

const RARE: [Format; 12] = [
    Format::IQ4NL,
    Format::IQ4XS,
    Format::IQ3S,
    Format::IQ3XXS,
    Format::IQ2S,
    Format::IQ2XS,
    Format::IQ2XXS,
    Format::IQ1M,
    Format::IQ1S,
    Format::TQ1_0,
    Format::TQ2_0,
    Format::MXFP4,
];

/// A model of random blocks, and another of the floats that they stand for.
fn models(format: Format) -> [Gguf; 2] {
    [false, true].map(|as_floats| {
        let mut seed = 1_u64;
        model_with("llama", |file, name, values| {
            let (outputs, inputs) = values.dims2().expect("a matrix");
            let (blocks, weights) = random(format, outputs, inputs, &mut seed);
            if as_floats {
                let weights = Tensor::from_vec(weights, (outputs, inputs), &Device::Cpu);
                let weights = weights.expect("a tensor");
                file.tensor(name, &weights, GgmlDType::F32).expect("floats")
            } else {
                let shape = [inputs as u64, outputs as u64];
                file.raw_tensor(name, &shape, format.number(), &blocks)
            }
        })
    })
}

/// Random blocks of about unit gain, and their weights.
fn random(format: Format, outputs: usize, inputs: usize, seed: &mut u64) -> (Vec<u8>, Vec<f32>) {
    let count = outputs * inputs;
    let bytes = count / format.block_weights() * format.block_bytes();
    let mut next = || {
        *seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 56) as u8
    };
    let mut blocks: Vec<u8> = (0..bytes).map(|_| next()).collect();
    set_scales(format, &mut blocks, 1.0);
    let square: f32 = weights(format, outputs, inputs, &blocks)
        .iter()
        .map(|weight| weight * weight)
        .sum();
    let scale = (count as f32 / square / inputs as f32).sqrt();
    set_scales(format, &mut blocks, scale);
    let weights = weights(format, outputs, inputs, &blocks);
    (blocks, weights)
}

fn weights(format: Format, outputs: usize, inputs: usize, blocks: &[u8]) -> Vec<f32> {
    let matrix = PackedMatrix::pack(format, outputs, inputs, blocks).expect("the shape is right");
    let mut weights = vec![0.0; outputs * inputs];
    for (output, row) in weights.chunks_mut(inputs).enumerate() {
        matrix.dequantize_row(output, row);
    }
    weights
}

fn set_scales(format: Format, blocks: &mut [u8], scale: f32) {
    let bits = f16::from_f32(scale).to_bits();
    for block in blocks.chunks_mut(format.block_bytes()) {
        match format {
            Format::MXFP4 => block[0] = (127.0 + scale.log2().round()) as u8,
            Format::IQ1M => {
                for k in 0..4 {
                    let high = &mut block[49 + 2 * k];
                    *high = *high & 15 | ((bits >> (4 * k)) as u8) << 4;
                }
            }
            Format::TQ1_0 => block[52..54].copy_from_slice(&bits.to_le_bytes()),
            Format::TQ2_0 => block[64..66].copy_from_slice(&bits.to_le_bytes()),
            _ => block[..2].copy_from_slice(&bits.to_le_bytes()),
        }
    }
}

#[test]
fn blocks_give_the_logits_of_their_floats_and_the_same_bits_in_any_company() {
    let tokens = tokens(11);
    for format in RARE {
        let [gguf, floats] = models(format);
        assert_eq!(gguf.dominant_format(), Some(format));
        let (mut exact, slot) = decoder(cpu(1), &floats);
        let exact = feed(&mut exact, slot, &tokens);
        let (mut single, slot) = decoder(cpu(1), &gguf);
        let singly: Vec<Vec<f32>> = tokens
            .iter()
            .flat_map(|token| feed(&mut single, slot, &[*token]))
            .collect();
        if format.takes_floats() {
            assert_eq!(singly, exact, "{format:?}");
        } else {
            let (error, size) = errors(&singly, &exact);
            assert!(error < 0.05 * size, "{format:?}: {error} of {size}");
        }
        let (mut ours, slot) = decoder(cpu(2), &gguf);
        let mut got = feed(&mut ours, slot, &tokens[..4]);
        got.extend(feed(&mut ours, slot, &tokens[4..]));
        assert_eq!(got, singly, "{format:?} on two threads");
    }
}

#[test]
fn candle_says_which_device_takes_them() {
    for format in RARE {
        let [gguf, _] = models(format);
        let tensor = gguf.tensor("token_embd.weight").expect("it is there");
        let error = CandleBackend::cpu()
            .matrix(&gguf, tensor)
            .expect_err("unknown");
        assert!(matches!(&error, BackendError::Format { format: found, .. } if *found == format));
        let text = error.to_string();
        assert!(text.contains(&format!("{format:?}")), "{text}");
        assert!(text.contains("device = \"cpu\""), "{text}");
    }
}
