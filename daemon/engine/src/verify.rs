//! Decides which drafted tokens stand, and the token after them: the exactness promise lives here.
//!
//! The emitted tokens are distributed exactly as if the target had been sampled token by token, whatever the draft:
//! - **Greedy or seeded**: the target's own token is known (argmax, or shared noise), a child stands if it is that token.
//!   With noise shared by target and draft (arXiv 2408.07978) the text depends on the seed alone.
//! - **Otherwise** rejection sampling: arXiv 2211.17192 for a chain, and without replacement among
//!   siblings as in SpecInfer and Sequoia for a tree.
//!
//! A chain is a tree with one branch and plain decoding an empty draft: there is one walk. This module must not know
//! where drafts or logits come from, nor stop conditions.

mod rejection;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;

use crate::sampling::{Distribution, Sampler, Source};

/// One drafted token.
#[derive(Clone, Debug)]
pub struct DraftNode {
    /// The token.
    pub token: TokenId,
    /// Index of the node it follows; `None` where it follows the committed tokens.
    pub parent: Option<usize>,
    /// What it was drawn from, before any sibling was taken out; `None` for a deterministic guess.
    pub probs: Option<Arc<Distribution>>,
}

/// A tree of drafted tokens; empty is plain decoding.
///
/// Parents precede children (a node that names itself or a later one as parent is never reached). Children of one parent
/// are in the order drawn, each from its `probs` without its earlier siblings; equal siblings count once.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The nodes.
    pub nodes: Vec<DraftNode>,
}

/// What became of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Indexes of the accepted nodes, from the root on.
    pub accepted: Vec<usize>,
    /// The token after them.
    pub next: TokenId,
    /// How `next` came about.
    pub kind: NextToken,
}

/// How the token after the accepted ones came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextToken {
    /// Every drafted token offered at its position was rejected.
    Recovered,
    /// Nothing was drafted for its position: all were accepted, or this is plain decoding.
    Bonus,
}

impl Draft {
    /// A draft without nodes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// One branch of deterministic guesses.
    pub fn chain(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        let mut draft = Self::default();
        for token in tokens {
            draft.extend_chain(token, None);
        }
        draft
    }

    /// One branch of drawn tokens, each with what it was drawn from.
    pub fn drawn_chain(tokens: impl IntoIterator<Item = (TokenId, Arc<Distribution>)>) -> Self {
        let mut draft = Self::default();
        for (token, probs) in tokens {
            draft.extend_chain(token, Some(probs));
        }
        draft
    }

    /// Adds a token after the last one and returns its index.
    pub fn extend_chain(&mut self, token: TokenId, probs: Option<Arc<Distribution>>) -> usize {
        let parent = self.nodes.len().checked_sub(1);
        self.push(token, parent, probs)
    }

    /// Adds a token after `parent` and returns its index.
    pub fn push(
        &mut self,
        token: TokenId,
        parent: Option<usize>,
        probs: Option<Arc<Distribution>>,
    ) -> usize {
        self.nodes.push(DraftNode {
            token,
            parent,
            probs,
        });
        self.nodes.len() - 1
    }

    /// Number of drafted tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is drafted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Nodes that follow `node`, in the order drawn.
    fn children(&self, node: Option<usize>, out: &mut Vec<usize>) {
        // Only later nodes: a malformed draft cannot send the walk in circles.
        let first = node.map_or(0, |index| index + 1);
        out.clear();
        out.extend((first..self.nodes.len()).filter(|&index| self.nodes[index].parent == node));
    }
}

/// Verifies `draft` and chooses the token that follows what stands of it. Commits nothing.
///
/// `logits(None)` is the row after the committed tokens, `logits(Some(i))` the row of node `i`; only rows on the accepted
/// path are asked for. `position` is the absolute index of the first token to be chosen.
pub fn verify<'a, R: Into<LogitsRow<'a>>>(
    draft: &Draft,
    sampler: &mut Sampler,
    position: usize,
    mut logits: impl FnMut(Option<usize>) -> R,
) -> Verdict {
    let logits = |node| logits(node).into();
    let Sampler {
        processor,
        source,
        scratch,
    } = sampler;
    let probs = &mut scratch.distribution;
    if processor.is_greedy() {
        let row = &mut scratch.row;
        return walk(draft, logits, |logits, drafted, children| {
            matching(draft, children, processor.most_likely(logits, drafted, row))
        });
    }
    match source {
        Source::Shared(noise) => walk(draft, logits, |logits, drafted, children| {
            processor.distribution_into(logits, drafted, probs);
            matching(draft, children, noise.draw(probs, position + drafted.len()))
        }),
        Source::Own(generator) => {
            let mut chooser = rejection::Chooser {
                processor,
                probs,
                buffer: &mut scratch.residual,
            };
            walk(draft, logits, |logits, drafted, children| {
                chooser.choose(draft, children, logits, drafted, generator)
            })
        }
    }
}

/// What is decided at one position.
enum Choice {
    /// The child of this index stands.
    Child(usize),
    /// This token, and no child, comes next.
    Token(TokenId),
}

/// Follows the choices of `choose` (row, accepted tokens, children) from the root until one is not a child.
fn walk<'a>(
    draft: &Draft,
    mut logits: impl FnMut(Option<usize>) -> LogitsRow<'a>,
    mut choose: impl FnMut(LogitsRow<'a>, &[TokenId], &[usize]) -> Choice,
) -> Verdict {
    let (mut accepted, mut drafted, mut children) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let node = accepted.last().copied();
        draft.children(node, &mut children);
        match choose(logits(node), &drafted, &children) {
            Choice::Child(child) => {
                accepted.push(child);
                drafted.push(draft.nodes[child].token);
            }
            Choice::Token(next) => {
                let kind = if children.is_empty() {
                    NextToken::Bonus
                } else {
                    NextToken::Recovered
                };
                return Verdict {
                    accepted,
                    next,
                    kind,
                };
            }
        }
    }
}

/// The child that equals the target's own token, else that token.
fn matching(draft: &Draft, children: &[usize], token: TokenId) -> Choice {
    let child = children
        .iter()
        .find(|&&child| draft.nodes[child].token == token);
    child.map_or(Choice::Token(token), |&child| Choice::Child(child))
}
