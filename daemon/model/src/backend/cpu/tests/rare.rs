//! Formats that candle cannot write: random blocks, held against the same weights as floats.

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use tandem_kernels::Format;

use super::*;
use crate::backend::BackendError;
use crate::testing::{Random, random_matrix};

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
        let mut random = Random(1);
        model_with("llama", |file, name, values| {
            let (outputs, inputs) = values.dims2().expect("a matrix");
            let (blocks, weights) = random_matrix(format, outputs, inputs, &mut random);
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
