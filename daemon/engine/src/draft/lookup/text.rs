//! One text and its index.

use tandem_model::TokenId;

use super::Guess;
use super::automaton::{Automaton, Match, Place};

/// Matches of this many tokens are where a text is being copied; where one breaks off is worth remembering.
const LONG_MATCH: usize = 16;

/// Tokens that may come between the end of a long match and the place where it resumes.
const GAP: usize = 64;

/// Most bytes that a [`Lookup`] takes per token of a long text, memory held for growth included; ordinary text takes 70 to
/// 90, and 55 to 70 once shrunk.
///
/// At most 2 states of 24 bytes, in vectors at most twice as large; a token of 4, the same; and a further edge of 17 in a
/// table filled to 7/16 or more.
pub const MAX_BYTES_PER_TOKEN: usize = 144;

/// A text that grows at its end and knows where its end occurred before.
///
/// Of several occurrences of the longest end the newest counts, except beside a long match that broke off less than 64
/// tokens ago: there the one nearest to where that match would be by now, because an edit goes on after what it changed.
#[derive(Debug)]
pub struct Lookup {
    tokens: Vec<TokenId>,
    automaton: Automaton,
    /// The longest end of the text that occurred before.
    longest: Match,
    /// The long match that is going on or broke off last.
    copied: Option<Copied>,
}

/// A long match and how far it got.
#[derive(Clone, Copy, Debug)]
struct Copied {
    /// Index of the token that followed it in its source.
    source: usize,
    /// Tokens of the text when it got there.
    at: usize,
}

impl Default for Lookup {
    fn default() -> Self {
        Self::new()
    }
}

impl Lookup {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tokens: Vec::new(),
            automaton: Automaton::new(),
            longest: Match::default(),
            copied: None,
        }
    }

    /// Appends tokens, each in amortised constant time.
    pub fn extend(&mut self, tokens: &[TokenId]) {
        self.tokens.reserve(tokens.len());
        for &token in tokens {
            self.push(token);
        }
    }

    fn push(&mut self, token: TokenId) {
        self.longest = self.automaton.append(token);
        let Match { length, source } = self.longest;
        let at = self.tokens.len();
        self.tokens.push(token);
        // The match that is going on remains a longest one, whichever else is newer: none grows by more than a token.
        let going_on = self
            .copied
            .filter(|copied| copied.at == at && self.tokens[copied.source] == token);
        if let Some(copied) = going_on {
            self.copied = Some(Copied {
                source: copied.source + 1,
                at: at + 1,
            });
        } else if length >= LONG_MATCH {
            self.copied = Some(Copied { source, at: at + 1 });
        }
    }

    /// Guesses up to `max_len` tokens that follow; none where the last token is new to the text.
    #[must_use]
    pub fn propose(&self, max_len: usize) -> Guess {
        let Match { length, source } = self.longest;
        if length == 0 || max_len == 0 {
            return Guess::default();
        }
        let resumed = self.resumed();
        Guess {
            match_length: length,
            resumed: matches!(resumed, Some((_, true))),
            tokens: self.following(resumed.map_or(source, |(source, _)| source), max_len),
        }
    }

    /// The guess beside `first`, which [`Self::propose`] gave: what the newest place of the longest match says, where that
    /// begins with another token because the first goes on with a copy.
    #[must_use]
    pub fn alternative(&self, first: &Guess, max_len: usize) -> Guess {
        let Match { length, source } = self.longest;
        if first
            .tokens
            .first()
            .is_none_or(|token| *token == self.tokens[source])
        {
            return Guess::default();
        }
        Guess {
            match_length: length,
            resumed: false,
            tokens: self.following(source, max_len),
        }
    }

    /// The source of the long match that is going on, or of one that resumes (true).
    fn resumed(&self) -> Option<(usize, bool)> {
        let copied = self.copied?;
        let gap = self.tokens.len() - copied.at;
        if gap == 0 {
            return Some((copied.source, false));
        }
        let length = self.longest.length;
        if gap > GAP || length >= LONG_MATCH {
            return None;
        }
        let end = &self.tokens[self.tokens.len() - length..];
        let expected = copied.source + gap;
        let last = (expected + GAP).min(self.tokens.len() - 1);
        (copied.source.max(length)..=last)
            .filter(|&source| self.tokens[source - length..source] == *end)
            .min_by_key(|source| source.abs_diff(expected))
            .map(|source| (source, true))
    }

    /// What followed at `source`; where that reaches the end of the text, it repeats.
    fn following(&self, source: usize, max_len: usize) -> Vec<TokenId> {
        self.tokens[source..]
            .iter()
            .copied()
            .cycle()
            .take(max_len)
            .collect()
    }

    /// Moves a place that another text has reached in this one on by `tokens` of that text.
    pub(super) fn follow(&self, place: &mut Place, tokens: &[TokenId]) {
        self.automaton.follow(place, tokens);
    }

    /// What the other text shares with this one before a place that has a continuation.
    pub(super) fn matched(&self, place: Place) -> Option<usize> {
        let Match { length, source } = self.automaton.found(place);
        (length > 0 && source < self.tokens.len()).then_some(length)
    }

    /// Guesses up to `max_len` tokens that follow a place, never past the end of this text.
    pub(super) fn propose_at(&self, place: Place, max_len: usize) -> Guess {
        let Some(match_length) = self.matched(place) else {
            return Guess::default();
        };
        let following = &self.tokens[self.automaton.found(place).source..];
        Guess {
            match_length,
            resumed: false,
            tokens: following[..max_len.min(following.len())].to_vec(),
        }
    }

    /// The text.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Gives back memory that is held for growth.
    pub fn shrink(&mut self) {
        self.tokens.shrink_to_fit();
        self.automaton.shrink();
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tokens.capacity() * size_of::<TokenId>() + self.automaton.bytes()
    }
}
