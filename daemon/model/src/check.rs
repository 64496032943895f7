//! Holds a device against plain code on the CPU, without the instructions that this machine has beyond the least: what it
//! computes for a small random model, and whether a row's result depends on the rows beside it. [`products`] does so for
//! single kernels, against sums in f64. Needs no model on the disk but the one that [`model`] writes. That the plain code is
//! right is shown by tests, which hold it against candle.

use std::path::Path;

pub use tandem_kernels::check::{Products, products};
pub use tandem_kernels::{Format, Isa};

use crate::TokenId;
use crate::backend::cpu::CpuBackend;
use crate::gguf::Gguf;
use crate::hardware::{Device, Hardware};
use crate::model::{Decoder, LanguageModel, ModelError, Row, Slot};
use crate::synthetic::TinyModel;

/// The largest error that rounding and quantized activations explain, relative to the size of the logits.
pub const TOLERANCE: f64 = 0.05;

/// Formats that every device computes with.
pub const FORMATS: [Format; 13] = [
    Format::F32,
    Format::F16,
    Format::BF16,
    Format::Q4_0,
    Format::Q4_1,
    Format::Q5_0,
    Format::Q5_1,
    Format::Q8_0,
    Format::Q2K,
    Format::Q3K,
    Format::Q4K,
    Format::Q5K,
    Format::Q6K,
];

/// Rows of one forward: more than any kernel takes at once.
const ROWS: usize = 37;
const CONTEXT: usize = 64;

/// How a device did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// What it is, such as `cuda (candle)`.
    pub backend: &'static str,
    /// Whether the backend says that rows do not depend on each other.
    pub says_invariant: bool,
    /// Whether every row had the same bits alone and beside others.
    pub is_invariant: bool,
    /// Root mean square of the difference to the reference, relative to that of the reference's logits.
    pub error: f64,
    /// Largest difference of a row alone to the same row beside others, relative to the same.
    pub row_error: f64,
}

impl Comparison {
    /// Whether the device computes what it should, and rows are as independent as the backend says.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let close = |error: f64| error <= TOLERANCE;
        close(self.error) && close(self.row_error) && (self.is_invariant || !self.says_invariant)
    }
}

/// Returns a GGUF file to [`compare`] with: two layers of floats, and an LM head in a format that is to be tried.
#[must_use]
pub fn model(head: Format) -> Vec<u8> {
    let model = TinyModel {
        width: 256,
        inner: 512,
        context_length: CONTEXT,
        spread: 0.1,
        ..TinyModel::default()
    };
    model.gguf_with_head(head)
}

/// Runs the model at `path` on a device and by plain code.
///
/// # Errors
/// A device that cannot be opened or fails; a file that is no such model.
pub fn compare(device: Device, path: &Path) -> Result<Comparison, ModelError> {
    let gguf = Gguf::open(path)?;
    let hardware = Hardware::open(device)?;
    let mut tried = hardware.load(&gguf, None, CONTEXT, &mut |_| {})?;
    let mut reference = Decoder::load(CpuBackend::plain(), &gguf, CONTEXT, &mut |_| {})?;
    let vocabulary = tried.config().vocabulary;
    let tokens: Vec<TokenId> = (0..ROWS)
        .map(|at| (at * 89 + 7) % vocabulary)
        .map(|token| TokenId::try_from(token).unwrap_or(0))
        .collect();
    let slot = reference.open()?;
    let expected = feed(&mut reference, slot, &tokens)?;
    let slot = tried.open()?;
    let together = feed(&mut *tried, slot, &tokens)?;
    let slot = tried.open()?;
    let mut alone = Vec::with_capacity(together.len());
    for token in &tokens {
        alone.extend(feed(&mut *tried, slot, std::slice::from_ref(token))?);
    }
    let size = rms(expected.iter().copied().map(f64::from)).max(1e-30);
    let differences = |of: &[f32], to: &[f32]| -> Vec<f64> {
        let both = of.iter().zip(to);
        both.map(|(a, b)| f64::from(*a) - f64::from(*b)).collect()
    };
    Ok(Comparison {
        backend: tried.backend(),
        says_invariant: tried.batch_invariant(),
        is_invariant: bits(&alone).eq(bits(&together)),
        error: rms(differences(&together, &expected).into_iter()) / size,
        row_error: largest(&differences(&alone, &together)) / size,
    })
}

/// Feeds a chain and returns the logits of all its rows.
fn feed(
    model: &mut dyn LanguageModel,
    slot: Slot,
    tokens: &[TokenId],
) -> Result<Vec<f32>, ModelError> {
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    let want: Vec<usize> = (0..rows.len()).collect();
    let logits = model.forward(&rows, &want)?;
    Ok(want
        .iter()
        .flat_map(|row| logits.row(*row).to_vec())
        .collect())
}

fn bits(values: &[f32]) -> impl Iterator<Item = u32> {
    values.iter().map(|value| value.to_bits())
}

fn rms(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    (values.map(|value| value * value).sum::<f64>() / count).sqrt()
}

/// The largest magnitude; NaN where there is one, which `f64::max` would hide.
fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| {
        if most.is_nan() || value.abs() <= most {
            most
        } else {
            value.abs()
        }
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn on_the_cpu(head: Format) -> Comparison {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.gguf");
        std::fs::write(&path, model(head)).unwrap();
        let threads = NonZeroUsize::new(2).unwrap();
        compare(Device::Cpu(threads), &path).unwrap()
    }

    #[test]
    fn the_cpu_agrees_with_the_reference_in_every_format() {
        for format in FORMATS {
            let found = on_the_cpu(format);
            assert!(found.is_sound(), "{format:?}: {found:?}");
            assert!(
                found.says_invariant && found.is_invariant && found.row_error == 0.0,
                "{format:?}: {found:?}"
            );
            assert!(found.error > 0.0, "two implementations differ by a little");
        }
    }

    #[test]
    fn errors_and_broken_promises_are_not_sound() {
        let sound = Comparison {
            backend: "some",
            says_invariant: false,
            is_invariant: false,
            error: 0.01,
            row_error: 0.01,
        };
        assert!(sound.is_sound());
        let says_invariant = true;
        assert!(
            !Comparison {
                says_invariant,
                ..sound
            }
            .is_sound()
        );
        for wrong in [0.2, f64::NAN] {
            assert!(
                !Comparison {
                    error: wrong,
                    ..sound
                }
                .is_sound()
            );
            assert!(
                !Comparison {
                    row_error: wrong,
                    ..sound
                }
                .is_sound()
            );
        }
        assert!(largest(&[1.0, f64::NAN, 2.0]).is_nan());
        assert_eq!(largest(&[1.0, -3.0, 2.0]), 3.0);
    }

    #[test]
    fn a_device_that_this_build_lacks_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.gguf");
        std::fs::write(&path, model(Format::F32)).unwrap();
        let gpus = [
            (Device::Metal, cfg!(feature = "metal"), "--features metal"),
            (Device::Cuda, cfg!(feature = "cuda"), "--features cuda"),
        ];
        for (device, built, advice) in gpus {
            if !built {
                let error = compare(device, &path).unwrap_err().to_string();
                assert!(error.contains(advice), "{error}");
            }
        }
    }
}
