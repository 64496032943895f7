//! From logits to the distribution a token is drawn from.

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;
use tandem_model::math;

use super::history::History;
use super::{Distribution, SamplingParams, truncate};

/// The transforms of one sequence and the history they look at.
///
/// NaN counts as negative infinity. A row with nothing above negative infinity says nothing; token 0 is taken with
/// certainty, greedy or not, so that the outcome is one and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Processor {
    params: SamplingParams,
    history: History,
}

impl Processor {
    pub(crate) fn new(params: SamplingParams, prompt: &[TokenId]) -> Self {
        let history = History::new(&params, prompt);
        Self { params, history }
    }

    pub(crate) fn commit(&mut self, token: TokenId) {
        self.history.commit(token);
    }

    pub(crate) fn is_greedy(&self) -> bool {
        self.params.is_greedy()
    }

    /// Argmax after penalties and bias; reads `logits` in place where there are none, else copies into `buffer`.
    pub(crate) fn most_likely(
        &self,
        logits: LogitsRow<'_>,
        drafted: &[TokenId],
        buffer: &mut Vec<f32>,
    ) -> TokenId {
        if !self.history.adjusts(&self.params) {
            return logits.likeliest();
        }
        let logits = logits.values();
        buffer.clear();
        buffer.extend_from_slice(logits);
        self.history.adjust(&self.params, logits, drafted, buffer);
        math::argmax(buffer) as TokenId
    }

    /// Whether choosing reads more of a row than what leads in it.
    pub(crate) fn reads_values(&self) -> bool {
        !self.is_greedy() || self.history.adjusts(&self.params)
    }

    /// Writes the distribution after this history and `drafted` into `out`, whose memory is reused.
    ///
    /// Linear in the vocabulary: a copy, a maximum, `exp` and a sum; with top-k those last run over k logits.
    pub(crate) fn distribution_into(
        &self,
        logits: LogitsRow<'_>,
        drafted: &[TokenId],
        out: &mut Distribution,
    ) {
        if self.is_greedy() {
            let token = self.most_likely(logits, drafted, &mut out.weights);
            return out.set_one_hot(token);
        }
        let logits = logits.values();
        out.ids.clear();
        out.weights.clear();
        out.weights.extend_from_slice(logits);
        if self.history.adjusts(&self.params) {
            self.history
                .adjust(&self.params, logits, drafted, &mut out.weights);
        }
        let SamplingParams {
            temperature,
            top_k,
            top_p,
            min_p,
            ..
        } = self.params;
        if top_k > 0 && top_k < logits.len() {
            truncate::keep_top_k(out, top_k);
        }
        if !softmax(out, temperature) {
            return out.set_one_hot(0);
        }
        if top_p < 1.0 || min_p > 0.0 {
            truncate::keep_top_p_min_p(out, top_p, min_p);
        }
    }
}

/// Turns logits into weights of which the largest is 1; false where no logit is above negative infinity.
fn softmax(row: &mut Distribution, temperature: f32) -> bool {
    let mut largest = math::max(&row.weights);
    if largest == f32::NEG_INFINITY {
        return false;
    }
    if largest == f32::INFINITY {
        // Infinite logits share what there is; the rest keeps its distance to the largest number.
        largest = f32::MAX;
        row.weights
            .iter_mut()
            .for_each(|logit| *logit = if *logit > largest { largest } else { *logit });
    }
    // Bounded, so that a distance of 0 stays 0 at the smallest temperatures.
    let inverse = 1.0 / temperature.max(1e-30);
    math::exp_all(&mut row.weights, largest, inverse);
    row.total = math::sum(&row.weights);
    true
}
