//! What drafted tokens are drawn from, kept to be used again.

use std::sync::Arc;

use crate::sampling::Distribution;

/// Vocabulary-wide distributions, of which those that no draft holds any more are free.
#[derive(Debug, Default)]
pub(super) struct Distributions(Vec<Arc<Distribution>>);

impl Distributions {
    /// Takes a distribution that nobody else holds, or makes one.
    pub(super) fn unused(&mut self) -> Arc<Distribution> {
        let free = |distribution: &mut Arc<Distribution>| Arc::get_mut(distribution).is_some();
        match self.0.iter_mut().position(free) {
            Some(index) => self.0.swap_remove(index),
            None => Arc::new(Distribution::one_hot(0)),
        }
    }

    /// Keeps one for later.
    pub(super) fn keep(&mut self, distribution: Arc<Distribution>) {
        self.0.push(distribution);
    }
}
