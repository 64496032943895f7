//! Perplexity of a model on token ids, as golden data gives it.

use serde_json::Value;
use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, Row};

/// Rows fed at a time: uneven pieces, as prompts come.
const PIECE: usize = 61;

/// Token ids and their perplexity by plain f32 arithmetic, from what `golden/make_perplexity.py` wrote.
pub(crate) fn golden(json: &str) -> (Vec<TokenId>, f64) {
    let golden: Value = serde_json::from_str(json).expect("golden data is JSON");
    let tokens = serde_json::from_value(golden["tokens"].clone()).expect("token ids");
    (tokens, golden["perplexity"].as_f64().expect("a number"))
}

/// exp of the mean loss of each token but the first.
pub(crate) fn perplexity(model: &mut dyn LanguageModel, tokens: &[TokenId]) -> f64 {
    let slot = model.open().expect("a cache");
    let mut loss = 0.0;
    for (piece, start) in tokens.chunks(PIECE).zip((0..).step_by(PIECE)) {
        let rows: Vec<Row> = Row::chain(slot, piece).collect();
        let want: Vec<usize> = (0..rows.len()).collect();
        let logits = model.forward(&rows, &want).expect("it runs");
        for row in want {
            if let Some(&token) = tokens.get(start + row + 1) {
                let logits = logits.row(row);
                loss += log_sum_exp(logits) - f64::from(logits[token as usize]);
            }
        }
    }
    (loss / (tokens.len() - 1) as f64).exp()
}

fn log_sum_exp(logits: &[f32]) -> f64 {
    let peak = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|x| f64::from(x - peak).exp()).sum();
    f64::from(peak) + sum.ln()
}
