//! What drafted tokens are drawn from, kept to be used again.

use std::sync::Arc;

use tandem_model::logits::LogitsRow;

use crate::sampling::Distribution;

/// Vocabulary-wide distributions, of which those that no draft holds any more are free.
#[derive(Debug, Default)]
pub(super) struct Distributions {
    all: Vec<Arc<Distribution>>,
    /// Tokens of the target, where the model that drafts has more.
    vocabulary: Option<usize>,
}

impl Distributions {
    /// Draws nothing from beyond so many tokens.
    pub(super) fn within(vocabulary: Option<usize>) -> Self {
        let all = Vec::new();
        Self { all, vocabulary }
    }

    /// What may be drawn from of a row of logits. What is beyond the target's vocabulary has to go before anything is drawn: a
    /// draw that was thrown away afterwards would not be from what is verified.
    pub(super) fn seen<'a>(&self, logits: LogitsRow<'a>) -> LogitsRow<'a> {
        match self.vocabulary {
            None => logits,
            Some(tokens) => logits.without_from(tokens),
        }
    }

    /// Takes a distribution that nobody else holds, or makes one.
    pub(super) fn unused(&mut self) -> Arc<Distribution> {
        let free = |distribution: &mut Arc<Distribution>| Arc::get_mut(distribution).is_some();
        match self.all.iter_mut().position(free) {
            Some(index) => self.all.swap_remove(index),
            None => Arc::new(Distribution::one_hot(0)),
        }
    }

    /// Keeps one for later.
    pub(super) fn keep(&mut self, distribution: Arc<Distribution>) {
        self.all.push(distribution);
    }
}
