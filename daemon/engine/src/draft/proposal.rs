//! A draft in the making, with what the policy will want to know of each token.

use std::sync::Arc;

use tandem_model::TokenId;

use crate::policy::{DraftKind, Evidence, NodeOutcome};
use crate::sampling::Distribution;
use crate::verify::Draft;

/// Where a drafted token comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Who proposed it.
    pub kind: DraftKind,
    /// Drafted tokens above it.
    pub depth: usize,
    /// Its place among the children of its parent that the same drafter proposed.
    pub sibling: usize,
    /// What was known of it.
    pub evidence: Evidence,
}

/// What all drafters together propose for one sequence.
#[derive(Clone, Debug, Default)]
pub struct Proposal {
    draft: Draft,
    /// Of which node each is; several of a node that several drafters had.
    origins: Vec<(usize, Origin)>,
}

impl Proposal {
    /// The tree.
    #[must_use]
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Adds a token after `parent` and returns its index: that of an equal sibling, where another drafter had the same.
    pub fn push(
        &mut self,
        token: TokenId,
        parent: Option<usize>,
        probs: Option<Arc<Distribution>>,
        origin: Origin,
    ) -> usize {
        let mut nodes = self.draft.nodes.iter();
        let equal = nodes.position(|node| node.parent == parent && node.token == token);
        let index = equal.unwrap_or_else(|| self.draft.push(token, parent, probs));
        self.origins.push((index, origin));
        index
    }

    /// The drafted tokens from the root to `node`, in order.
    pub(crate) fn path(&self, mut node: Option<usize>, into: &mut Vec<TokenId>) {
        into.clear();
        while let Some(index) = node {
            into.push(self.draft.nodes[index].token);
            node = self.draft.nodes[index].parent;
        }
        into.reverse();
    }

    /// The drafted tokens along the first child of each node: the likeliest outcome of all.
    pub(crate) fn leading(&self) -> Vec<TokenId> {
        let mut tokens = Vec::new();
        let mut at = None;
        for (index, node) in self.draft.nodes.iter().enumerate() {
            if node.parent == at {
                tokens.push(node.token);
                at = Some(index);
            }
        }
        tokens
    }

    /// Puts the nodes named by `first` in front, in that order; the others keep theirs. Parents must stay before their
    /// children.
    pub(crate) fn reorder(&mut self, first: &[usize]) {
        let rest = (0..self.draft.len()).filter(|index| !first.contains(index));
        let order: Vec<usize> = first.iter().copied().chain(rest).collect();
        if order
            .iter()
            .enumerate()
            .all(|(place, index)| place == *index)
        {
            return;
        }
        let mut places = vec![0; order.len()];
        for (place, &index) in order.iter().enumerate() {
            places[index] = place;
        }
        let nodes = order.iter().map(|&index| {
            let mut node = self.draft.nodes[index].clone();
            node.parent = node.parent.map(|parent| places[parent]);
            node
        });
        self.draft = Draft {
            nodes: nodes.collect(),
        };
        for (index, _) in &mut self.origins {
            *index = places[*index];
        }
    }

    /// What is known of the nodes once `accepted` of them stand and `next` follows: of every child of an accepted node,
    /// whether it was the token that came.
    pub(crate) fn outcomes(&self, accepted: &[usize], next: TokenId, into: &mut Vec<NodeOutcome>) {
        into.clear();
        for (index, origin) in &self.origins {
            let node = &self.draft.nodes[*index];
            let depth = match node.parent {
                None => 0,
                Some(parent) => match accepted.iter().position(|&index| index == parent) {
                    Some(place) => place + 1,
                    None => continue,
                },
            };
            let came = accepted
                .get(depth)
                .map_or(next, |&index| self.draft.nodes[index].token);
            into.push(NodeOutcome {
                kind: origin.kind,
                depth: origin.depth,
                sibling: origin.sibling,
                evidence: origin.evidence,
                accepted: node.token == came,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(depth: usize) -> Origin {
        Origin {
            kind: DraftKind::Model,
            depth,
            sibling: 0,
            evidence: Evidence::None,
        }
    }

    fn tree() -> Proposal {
        let mut proposal = Proposal::default();
        let a = proposal.push(10, None, None, origin(0));
        proposal.push(11, None, None, origin(0));
        let c = proposal.push(12, Some(a), None, origin(1));
        proposal.push(13, Some(c), None, origin(2));
        proposal
    }

    #[test]
    fn equal_siblings_are_one_node() {
        let mut proposal = tree();
        assert_eq!(proposal.push(12, Some(0), None, origin(1)), 2);
        assert_eq!(proposal.push(12, Some(1), None, origin(1)), 4);
    }

    #[test]
    fn a_new_order_keeps_the_tree() {
        let mut proposal = tree();
        proposal.reorder(&[0, 2]);
        let tokens: Vec<_> = proposal.draft.nodes.iter().map(|n| n.token).collect();
        assert_eq!(tokens, [10, 12, 11, 13]);
        let mut path = Vec::new();
        proposal.path(Some(3), &mut path);
        assert_eq!(path, [10, 12, 13]);
    }

    #[test]
    fn what_was_offered_where_the_text_went_is_known() {
        let mut outcomes = Vec::new();
        tree().outcomes(&[0], 12, &mut outcomes);
        let known: Vec<_> = outcomes.iter().map(|o| (o.depth, o.accepted)).collect();
        assert_eq!(known, [(0, true), (0, false), (1, true)]);
    }
}
