//! A suffix automaton that grows with its text: every substring is a path from the root.

use tandem_model::TokenId;

use super::edges::{Edges, NONE};

/// The state of the empty string.
const ROOT: u32 = 0;

/// How many shorter ends of the text hear of their newest occurrence when a token comes. Ordinary text has a handful;
/// only endless repetition has more, and those then keep an older occurrence, which serves as well.
const MOST_ENDS: usize = 32;

/// Substrings that occurred at the same places.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Tokens of the longest of them.
    length: u32,
    /// The state of the longest end of them that occurred elsewhere too.
    link: u32,
    /// Where their newest known occurrence ends: the index of the token that followed it.
    end: u32,
}

/// An occurrence of the end of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Match {
    /// Tokens it covers.
    pub(super) length: usize,
    /// Index of the token that followed it.
    pub(super) source: usize,
}

/// How far another text is found in this one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    state: u32,
    /// Tokens of its end that are found.
    length: u32,
}

/// The automaton (Blumer et al., 1985). Takes amortised constant time per token, has at most two states per token and
/// at most one edge per token beyond the first of each state.
#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    edges: Edges,
    /// The state of the whole text.
    whole: u32,
}

impl Automaton {
    pub(super) fn new() -> Self {
        let mut automaton = Self {
            states: Vec::new(),
            edges: Edges::default(),
            whole: ROOT,
        };
        automaton.push(State {
            length: 0,
            link: NONE,
            end: 0,
        });
        automaton
    }

    /// Appends a token and returns the longest end of the text that occurred before, where it occurred last.
    pub(super) fn append(&mut self, token: TokenId) -> Match {
        let length = self.state(self.whole).length + 1;
        let whole = self.push(State {
            length,
            link: ROOT,
            end: length,
        });
        let mut state = std::mem::replace(&mut self.whole, whole);
        let target = loop {
            if let Some(target) = self.edges.get(state, token) {
                break Some(target);
            }
            self.edges.add(state, token, whole);
            state = self.state(state).link;
            if state == NONE {
                break None;
            }
        };
        let Some(target) = target else {
            return Match::default();
        };
        let repeated = if self.state(state).length + 1 == self.state(target).length {
            target
        } else {
            self.split(state, token, target)
        };
        self.states[whole as usize].link = repeated;
        let found = self.state(repeated);
        self.tell(repeated, length);
        Match {
            length: found.length as usize,
            source: found.end as usize,
        }
    }

    /// Gives those substrings of `target` that are ends of `state` and `token` a state of their own, because from now on
    /// they occur where the longer ones do not.
    fn split(&mut self, mut state: u32, token: TokenId, target: u32) -> u32 {
        let split = self.push(State {
            length: self.state(state).length + 1,
            ..self.state(target)
        });
        self.edges.copy(target, split);
        while state != NONE && self.edges.get(state, token) == Some(target) {
            self.edges.redirect(state, token, split);
            state = self.state(state).link;
        }
        self.states[target as usize].link = split;
        split
    }

    /// Tells `state` and the shorter ends below it that they occurred at `end`.
    fn tell(&mut self, mut state: u32, end: u32) {
        for _ in 0..MOST_ENDS {
            if state == ROOT {
                break;
            }
            let told = &mut self.states[state as usize];
            told.end = end;
            state = told.link;
        }
    }

    /// Moves a place that another text has reached on by `tokens` of that text. Places hold while nothing is appended.
    pub(super) fn follow(&self, place: &mut Place, tokens: &[TokenId]) {
        for &token in tokens {
            loop {
                if let Some(target) = self.edges.get(place.state, token) {
                    place.state = target;
                    place.length += 1;
                    break;
                }
                if place.state == ROOT {
                    break;
                }
                place.state = self.state(place.state).link;
                place.length = self.state(place.state).length;
            }
        }
    }

    /// The longest end of the other text that occurs in this one, where it occurred last.
    pub(super) fn found(&self, place: Place) -> Match {
        Match {
            length: place.length as usize,
            source: self.state(place.state).end as usize,
        }
    }

    /// Gives back memory that is held for more text.
    pub(super) fn shrink(&mut self) {
        self.states.shrink_to_fit();
        self.edges.shrink();
    }

    /// Bytes allocated.
    pub(super) fn bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>() + self.edges.bytes()
    }

    fn state(&self, state: u32) -> State {
        self.states[state as usize]
    }

    fn push(&mut self, state: State) -> u32 {
        let index = u32::try_from(self.states.len()).expect("a context is far below 2^31 tokens");
        self.states.push(state);
        self.edges.add_state();
        index
    }
}
