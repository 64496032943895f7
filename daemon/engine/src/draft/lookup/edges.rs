//! Where each token leads from each state of an automaton.

use std::collections::HashMap;

use tandem_model::TokenId;

/// No state, and no token: no vocabulary has this many.
pub(super) const NONE: u32 = u32::MAX;

/// The first edge that a state got; most states have no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstEdge {
    token: TokenId,
    target: u32,
    /// Token of the state's next edge, which is in the table.
    more: TokenId,
}

/// A further edge of a state, found by state and token.
#[derive(Clone, Copy, Debug)]
struct Edge {
    target: u32,
    /// Token of the state's next edge.
    more: TokenId,
}

/// All edges. A state's edges form a list, so that they can be copied; past the first they are found by hash.
#[derive(Debug, Default)]
pub(super) struct Edges {
    first: Vec<FirstEdge>,
    further: HashMap<(u32, TokenId), Edge>,
}

impl Edges {
    /// Adds a state without edges.
    pub(super) fn add_state(&mut self) {
        self.first.push(FirstEdge {
            token: NONE,
            target: NONE,
            more: NONE,
        });
    }

    /// Where `token` leads from `state`.
    pub(super) fn get(&self, state: u32, token: TokenId) -> Option<u32> {
        let first = &self.first[state as usize];
        if first.token == token {
            return (first.target != NONE).then_some(first.target);
        }
        if first.more == NONE {
            return None;
        }
        self.further.get(&(state, token)).map(|edge| edge.target)
    }

    /// Lets `token`, which leads nowhere yet, lead from `state` to `target`.
    pub(super) fn add(&mut self, state: u32, token: TokenId, target: u32) {
        let first = &mut self.first[state as usize];
        if first.target == NONE {
            (first.token, first.target) = (token, target);
            return;
        }
        let edge = Edge {
            target,
            more: std::mem::replace(&mut first.more, token),
        };
        self.further.insert((state, token), edge);
    }

    /// Lets `token` lead from `state` to another target than before.
    pub(super) fn redirect(&mut self, state: u32, token: TokenId, target: u32) {
        let first = &mut self.first[state as usize];
        if first.token == token {
            first.target = target;
        } else if let Some(edge) = self.further.get_mut(&(state, token)) {
            edge.target = target;
        }
    }

    /// Gives `to`, which has no edge, those of `from`. Edges never go away, so all copies together cost no more than the
    /// edges there are in the end.
    pub(super) fn copy(&mut self, from: u32, to: u32) {
        let first = self.first[from as usize];
        self.first[to as usize] = first;
        let mut token = first.more;
        while token != NONE {
            let Some(&edge) = self.further.get(&(from, token)) else {
                break;
            };
            self.further.insert((to, token), edge);
            token = edge.more;
        }
    }

    /// Gives back memory that is held for more edges.
    pub(super) fn shrink(&mut self) {
        self.first.shrink_to_fit();
        self.further.shrink_to_fit();
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        // A hash table holds a control byte for each place and fills at most 7 of 8, a power of two in all.
        let places = (self.further.capacity() * 8 / 7).next_power_of_two();
        let place = size_of::<((u32, TokenId), Edge)>() + 1;
        let table = if self.further.capacity() == 0 {
            0
        } else {
            places * place
        };
        self.first.capacity() * size_of::<FirstEdge>() + table
    }
}
