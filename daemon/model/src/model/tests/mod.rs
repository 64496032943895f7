//! A file is served as it asks to be, or refused by name.

mod asked;
mod mutated;

use crate::TokenId;
use crate::backend::candle::CandleBackend;
use crate::model::{Decoder, LanguageModel, ModelError, Row};
use crate::testing::{GgufWriter, TinyModel, try_open};

/// One model of each architecture; of the window of gemma3 and the layers between, more positions and layers than each.
fn tiny(architecture: &'static str) -> TinyModel {
    TinyModel {
        architecture,
        layers: if architecture == "gemma3" { 6 } else { 2 },
        context_length: 64,
        ..TinyModel::default()
    }
}

const ARCHITECTURES: [&str; 4] = ["llama", "qwen2", "qwen3", "gemma3"];

/// Logits of a few rows, of the last of them all; or why the file is refused.
fn logits(file: &GgufWriter) -> Result<Vec<f32>, String> {
    let gguf = try_open(&file.finish()).map_err(|error| error.to_string())?;
    let load = || -> Result<Vec<f32>, ModelError> {
        let mut decoder = Decoder::load(CandleBackend::cpu(), &gguf, 64, &mut |_| {})?;
        let slot = decoder.open()?;
        let tokens: Vec<TokenId> = (0..24).map(|at| (at * 89 + 7) % 256).collect();
        let rows: Vec<Row> = Row::chain(slot, &tokens).collect();
        let want = [0, 5, 23];
        let logits = decoder.forward(&rows, &want)?;
        Ok((0..want.len())
            .flat_map(|row| logits.row(row).to_vec())
            .collect())
    };
    load().map_err(|error| error.to_string())
}

/// Whether they are another model's: not only rounded otherwise.
fn differ(a: &[f32], b: &[f32]) -> bool {
    let square = |values: &mut dyn Iterator<Item = f32>| -> f64 {
        values.map(|value| f64::from(value).powi(2)).sum()
    };
    let size = square(&mut a.iter().copied());
    a.len() != b.len() || square(&mut a.iter().zip(b).map(|(a, b)| a - b)) > 1e-12 * size
}
