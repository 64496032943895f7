//! What a model says of rows, in lists to compare.

use crate::TokenId;
use crate::gguf::Gguf;
use crate::hardware::{Device, Hardware};
use crate::logits::LogitsRow;
use crate::model::{LanguageModel, ModelError, Row, Slot};

/// Loads a model onto a device, for at most `context_length` positions a sequence.
///
/// # Errors
/// A device that cannot be opened or is out of memory; a file that is damaged or not supported.
pub fn load(
    device: Device,
    gguf: &Gguf,
    context_length: usize,
) -> Result<Box<dyn LanguageModel>, ModelError> {
    Hardware::open(device)?.load(gguf, None, context_length, &mut |_| {})
}

/// Feeds rows and returns the logits of the last `want` of them.
///
/// # Errors
/// As [`LanguageModel::forward`].
pub fn forward(
    model: &mut dyn LanguageModel,
    rows: &[Row],
    want: usize,
) -> Result<Vec<Vec<f32>>, ModelError> {
    let wanted: Vec<usize> = (rows.len() - want..rows.len()).collect();
    let logits = model.forward(rows, &wanted)?;
    Ok((0..want).map(|row| logits.row(row).to_vec()).collect())
}

/// Feeds a chain and returns the logits of the last `want` of its rows.
///
/// # Errors
/// As [`LanguageModel::forward`].
pub fn chain(
    model: &mut dyn LanguageModel,
    slot: Slot,
    tokens: &[TokenId],
    want: usize,
) -> Result<Vec<Vec<f32>>, ModelError> {
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    forward(model, &rows, want)
}

/// What leads in a row of logits, as the device told it or else as it is found in `[V]` values: the four likeliest tokens
/// and their probabilities.
#[must_use]
pub fn leading<'a>(row: impl Into<LogitsRow<'a>>) -> ([TokenId; 4], [f64; 4]) {
    let leading = row.into().leading();
    (leading.tokens, leading.probs)
}
