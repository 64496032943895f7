//! Which layer to leave the target after, where no adapter says it: measured on a text.

use tandem_model::TokenId;
use tandem_model::backend::Logits;
use tandem_model::model::{Exit, LanguageModel, ModelError, Row, Slot};

/// Longest draft that an exit is judged by.
const LONGEST: i32 = 8;
/// Places that are tried, in sixths of the layers.
const SIXTHS: std::ops::Range<usize> = 1..6;

/// How good an exit is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExitEstimate {
    /// Where it is.
    pub exit: Exit,
    /// Share of positions at which the likeliest token of exit and target are the same.
    pub agreement: f64,
    /// Bytes of weights that a drafted token reads, per byte that a step of the target does.
    pub cost: f64,
    /// Expected tokens per time of a plain step at the best draft length, where a verification takes as long as a plain
    /// step. Where it is not above 1, drafting by this exit cannot pay.
    pub goodput: f64,
}

impl ExitEstimate {
    fn new(exit: Exit, agreement: f64, cost: f64) -> Self {
        let rate = |length: i32| {
            let tokens: f64 = (0..=length).map(|i| agreement.powi(i)).sum();
            tokens / (1.0 + f64::from(length) * cost)
        };
        let goodput = (1..=LONGEST).map(rate).fold(0.0, f64::max);
        Self {
            exit,
            agreement,
            cost,
            goodput,
        }
    }
}

/// Measures how often exits agree with the target on a text, which should be one that the target might write.
///
/// # Errors
/// Where the model fails or has no such exit.
pub fn measure_exits(
    target: &mut dyn LanguageModel,
    text: &[TokenId],
    exits: impl IntoIterator<Item = Exit>,
) -> Result<Vec<ExitEstimate>, ModelError> {
    let slot = target.open()?;
    let estimates = measure(target, slot, text, exits);
    target.close(slot);
    estimates
}

fn measure(
    target: &mut dyn LanguageModel,
    slot: Slot,
    text: &[TokenId],
    exits: impl IntoIterator<Item = Exit>,
) -> Result<Vec<ExitEstimate>, ModelError> {
    let rows: Vec<Row> = Row::chain(slot, text).collect();
    let want: Vec<usize> = (0..rows.len()).collect();
    let likeliest = |logits: &Logits| -> Vec<Option<usize>> {
        let best = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        want.iter().map(|row| best(logits.row(*row))).collect()
    };
    let truth = likeliest(target.forward(&rows, &want)?);
    let mut estimates = Vec::new();
    for exit in exits {
        target.truncate(slot, 0);
        let guesses = likeliest(target.early(&rows, &want, exit)?);
        let agreed = guesses.iter().zip(&truth).filter(|(a, b)| a == b).count();
        let agreement = agreed as f64 / rows.len().max(1) as f64;
        estimates.push(ExitEstimate::new(exit, agreement, target.exit_cost(exit)?));
    }
    Ok(estimates)
}

/// Chooses, of some layers spread over the model, the one with most expected tokens per time on a text.
///
/// # Errors
/// Where the model fails, or is too shallow to be left early.
pub fn choose_exit(
    target: &mut dyn LanguageModel,
    text: &[TokenId],
) -> Result<ExitEstimate, ModelError> {
    let available = target.config().layers;
    let mut layers: Vec<usize> = SIXTHS
        .map(|sixths| (available * sixths / 6).max(1))
        .filter(|layers| *layers < available)
        .collect();
    layers.dedup();
    let exits = layers.into_iter().map(Exit::Layer);
    let estimates = measure_exits(target, text, exits)?;
    let best = estimates
        .into_iter()
        .max_by(|a, b| a.goodput.total_cmp(&b.goodput));
    best.ok_or(ModelError::ExitLayer {
        layers: 1,
        available,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_that_of_the_best_length() {
        let exit = Exit::Layer(1);
        // Never right: the shortest draft loses least.
        let never = ExitEstimate::new(exit, 0.0, 0.5);
        assert!((never.goodput - 1.0 / 1.5).abs() < 1e-12);
        // Always right and nearly free: the longest draft.
        let always = ExitEstimate::new(exit, 1.0, 0.01);
        assert!((always.goodput - 9.0 / 1.08).abs() < 1e-12);
        // Two tokens: 1.75 / 1.4 beats 1.5 / 1.2 only just not; one row more would cost more than it brings.
        let middling = ExitEstimate::new(exit, 0.5, 0.2);
        assert!((middling.goodput - 1.25).abs() < 1e-12);
    }
}
