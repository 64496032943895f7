//! Drafters that differ in how they choose siblings, honest and adversarial.

use std::sync::Arc;

use tandem_model::TokenId;

use super::models::Model;
use crate::sampling::{Chance, Distribution, distinct};
use crate::verify::Draft;

/// How the children of one node are proposed.
#[derive(Clone)]
pub(super) enum Proposer {
    /// Drawn without replacement from this model.
    Drawn(Model),
    /// Drawn with replacement from this model: siblings may be equal.
    Repeated(Model),
    /// The same guesses everywhere, without probabilities.
    Guesses(Vec<TokenId>),
    /// A guess that claims to be drawn from a distribution which excludes it.
    Misdeclared(TokenId),
    /// First a guess, then a draw from this model that may repeat it.
    GuessThenDrawn(TokenId, Model),
}

/// Grows `width` children per node, `depth` levels deep.
pub(super) fn grow(
    proposer: &Proposer,
    width: usize,
    depth: usize,
    chance: &mut impl Chance,
) -> Draft {
    let mut draft = Draft::empty();
    let mut level = vec![(None, Vec::new())];
    for _ in 0..depth {
        let mut below = Vec::new();
        for (parent, context) in level {
            for (token, probs) in propose(proposer, &context, width, chance) {
                let index = draft.push(token, parent, probs);
                below.push((Some(index), [&context[..], &[token]].concat()));
            }
        }
        level = below;
    }
    draft
}

type Proposed = Vec<(TokenId, Option<Arc<Distribution>>)>;

fn propose(
    proposer: &Proposer,
    context: &[TokenId],
    width: usize,
    chance: &mut impl Chance,
) -> Proposed {
    let shared = |model: &Model| Arc::new(model.distribution(context));
    let one = |probs: &Arc<Distribution>, chance: &mut _| {
        (distinct(chance, probs, 1)[0], Some(Arc::clone(probs)))
    };
    match proposer {
        Proposer::Drawn(model) => {
            let probs = shared(model);
            let tokens = distinct(chance, &probs, width);
            tokens
                .into_iter()
                .map(|token| (token, Some(Arc::clone(&probs))))
                .collect()
        }
        Proposer::Repeated(model) => {
            let probs = shared(model);
            (0..width).map(|_| one(&probs, chance)).collect()
        }
        Proposer::Guesses(tokens) => tokens
            .iter()
            .take(width)
            .map(|&token| (token, None))
            .collect(),
        Proposer::Misdeclared(token) => {
            let excluding = Arc::new(Distribution::one_hot(token + 1));
            vec![(*token, Some(excluding)); width.min(1)]
        }
        Proposer::GuessThenDrawn(token, model) => vec![(*token, None), one(&shared(model), chance)],
    }
}
