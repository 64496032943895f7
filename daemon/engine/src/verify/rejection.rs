//! Rejection sampling at one position: accept a child, or draw from what the rejected ones leave over.

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;
use tandem_model::math;

use super::{Choice, Draft, DraftNode};
use crate::sampling::{Chance, Distribution, Processor};

/// The target's transforms, and memory to reuse.
pub(super) struct Chooser<'a> {
    pub(super) processor: &'a Processor,
    pub(super) probs: &'a mut Distribution,
    pub(super) buffer: &'a mut Vec<f64>,
}

impl Chooser<'_> {
    /// Offers `children` in order against the target's distribution after `drafted`.
    pub(super) fn choose(
        &mut self,
        draft: &Draft,
        children: &[usize],
        logits: LogitsRow<'_>,
        drafted: &[TokenId],
        chance: &mut impl Chance,
    ) -> Choice {
        self.processor
            .distribution_into(logits, drafted, self.probs);
        let residual = Residual {
            target: self.probs,
            weights: self.buffer,
            total: None,
        };
        offer(draft, children, residual, chance)
    }
}

/// Offers `children` in order against `residual`, at first the target's whole distribution.
///
/// A child y drawn from q is accepted with min(1, p(y)/q(y)); after a rejection p becomes the normalised max(0, p - q) and
/// q loses y. The last p gives the token when no child stands. Costs two look-ups while children are accepted, a few
/// passes over the support of p per rejection.
fn offer(
    draft: &Draft,
    children: &[usize],
    mut residual: Residual<'_>,
    chance: &mut impl Chance,
) -> Choice {
    let mut tried = Vec::new();
    for &child in children {
        let node = &draft.nodes[child];
        // A draw that repeats a sibling is conditioned away: given that it differs, it is a draw without that sibling.
        if tried.contains(&node.token) {
            continue;
        }
        let proposal = Proposal::new(node, &tried);
        if chance.accept(residual.prob(node.token) / proposal.prob()) {
            return Choice::Child(child);
        }
        residual.subtract(&proposal);
        tried.push(node.token);
    }
    Choice::Token(residual.draw(chance))
}

/// What one child was drawn from, its earlier siblings taken out.
struct Proposal<'a> {
    token: TokenId,
    /// With the sum of the weights that remain; `None`: all mass on `token`.
    drawn_from: Option<(&'a Distribution, f64)>,
}

impl<'a> Proposal<'a> {
    fn new(node: &'a DraftNode, tried: &[TokenId]) -> Self {
        // A token its own distribution excludes was not drawn from it, so it can only be a guess.
        let drawn_from = node
            .probs
            .as_deref()
            .filter(|probs| probs.weight(node.token) > 0.0);
        let drawn_from = drawn_from.map(|probs| {
            let total = if tried.is_empty() {
                probs.total()
            } else {
                probs.total_without(tried)
            };
            (probs, total)
        });
        Self {
            token: node.token,
            drawn_from,
        }
    }

    /// Probability of its own token, above 0.
    fn prob(&self) -> f64 {
        self.drawn_from
            .map_or(1.0, |(probs, total)| probs.weight(self.token) / total)
    }
}

/// What is left of the target's distribution after the rejections so far.
struct Residual<'a> {
    target: &'a Distribution,
    /// Weights beside those of `target`; not filled before the first rejection.
    weights: &'a mut Vec<f64>,
    /// Sum of `weights`, once filled.
    total: Option<f64>,
}

impl Residual<'_> {
    fn prob(&self, token: TokenId) -> f64 {
        match self.total {
            None => self.target.weight(token) / self.target.total(),
            Some(total) => self
                .target
                .index(token)
                .map_or(0.0, |index| self.weights[index] / total),
        }
    }

    /// Replaces p by the normalised max(0, p - q). Tokens already taken out of q have no mass in p either.
    fn subtract(&mut self, proposal: &Proposal<'_>) {
        let target = self.target;
        let total = self.total.unwrap_or_else(|| {
            self.weights.clear();
            self.weights
                .extend(target.weights().iter().map(|&weight| f64::from(weight)));
            target.total()
        });
        self.weights.iter_mut().for_each(|weight| *weight /= total);
        match proposal.drawn_from {
            None => self.lower(proposal.token, 1.0),
            Some((probs, mass)) if probs.is_dense() && target.is_dense() => {
                for (weight, &other) in self.weights.iter_mut().zip(probs.weights()) {
                    *weight = (*weight - f64::from(other) / mass).max(0.0);
                }
            }
            Some((probs, mass)) if probs.weights().len() < self.weights.len() => {
                for (index, &other) in probs.weights().iter().enumerate() {
                    self.lower(probs.token(index), f64::from(other) / mass);
                }
            }
            Some((probs, mass)) => {
                for (index, weight) in self.weights.iter_mut().enumerate() {
                    *weight = (*weight - probs.weight(target.token(index)) / mass).max(0.0);
                }
            }
        }
        let rest = math::sum(self.weights);
        // Nothing left: p equals q up to rounding, and the rejection itself was a rounding. Then p is as good.
        self.total = (rest > 0.0).then_some(rest);
    }

    fn lower(&mut self, token: TokenId, prob: f64) {
        if let Some(index) = self.target.index(token) {
            self.weights[index] = (self.weights[index] - prob).max(0.0);
        }
    }

    fn draw(&self, chance: &mut impl Chance) -> TokenId {
        let index = match self.total {
            None => chance.pick(self.target.weights(), self.target.total()),
            Some(total) => chance.pick(self.weights, total),
        };
        self.target.token(index)
    }
}
