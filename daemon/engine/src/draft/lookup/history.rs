//! What each client had before.

use super::{Guess, Lookup, MAX_BYTES_PER_TOKEN};
use crate::TokenId;

/// Names a client; no client's history serves another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientKey(pub u64);

/// Most texts per client that are searched, which bounds the time of a guess.
const MAX_TEXTS: usize = 16;

/// Last tokens of a context that are looked for: longer matches are not told apart.
pub(super) const LONGEST_MATCH: usize = 32;

/// Recent texts of every client, bounded in bytes over all of them; what was of use longest ago goes first.
#[derive(Debug)]
pub struct History {
    max_bytes: usize,
    /// From the one of use longest ago to the one of use last.
    texts: Vec<(ClientKey, Lookup)>,
}

impl History {
    /// An empty history that comes to take `max_bytes` at most; with 0 it remembers nothing.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            texts: Vec::new(),
        }
    }

    /// Remembers a finished text of `client`. It replaces those it begins with, so that a conversation counts once; of one
    /// that would not fit, the end is kept.
    pub fn remember(&mut self, client: ClientKey, mut text: Lookup) {
        text.shrink();
        if text.bytes() > self.max_bytes {
            let fits = self.max_bytes / MAX_BYTES_PER_TOKEN;
            let tokens = text.tokens();
            let mut end = Lookup::new();
            end.extend(&tokens[tokens.len().saturating_sub(fits)..]);
            end.shrink();
            text = end;
        }
        if text.tokens().is_empty() {
            return;
        }
        self.texts
            .retain(|(owner, old)| *owner != client || !text.tokens().starts_with(old.tokens()));
        self.texts.push((client, text));
        let of_client = self.texts.iter().filter(|(owner, _)| *owner == client);
        if of_client.count() > MAX_TEXTS {
            let oldest = self.texts.iter().position(|(owner, _)| *owner == client);
            self.texts.remove(oldest.expect("counted above"));
        }
        while self.bytes() > self.max_bytes {
            self.texts.remove(0);
        }
    }

    /// Guesses up to `max_len` tokens that follow `context` from the texts of `client`: from the longest match, of several
    /// the one in the text that was of use last.
    pub fn propose(&mut self, client: ClientKey, context: &[TokenId], max_len: usize) -> Guess {
        let tail = &context[context.len().saturating_sub(LONGEST_MATCH)..];
        let mut best = (Guess::default(), 0);
        for (index, (owner, text)) in self.texts.iter().enumerate() {
            if *owner == client {
                let guess = text.propose_for(tail, max_len);
                if guess.match_length > 0 && guess.match_length >= best.0.match_length {
                    best = (guess, index);
                }
            }
        }
        let (guess, index) = best;
        if guess.match_length > 0 {
            self.texts[index..].rotate_left(1);
        }
        guess
    }

    /// Forgets what `client` had.
    pub fn forget(&mut self, client: ClientKey) {
        self.texts.retain(|(owner, _)| *owner != client);
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|(_, text)| text.bytes()).sum()
    }
}
