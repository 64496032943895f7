//! What each client had before.

use tandem_model::TokenId;

use super::automaton::Place;
use super::{Guess, Lookup, MAX_BYTES_PER_TOKEN};
use crate::ClientKey;

/// Most texts per client, which bounds the time of a guess.
const MAX_TEXTS: usize = 16;

/// Last tokens of a context that are looked for in a text which it was not read beside so far.
const TAIL: usize = 32;

/// Where one context stands in each of its client's texts, so that only its new tokens are looked for.
#[derive(Debug, Default)]
pub struct Reader {
    /// Tokens of the context that were looked for.
    read: usize,
    /// By number of the text.
    places: Vec<(u64, Place)>,
}

/// A finished text.
#[derive(Debug)]
struct Finished {
    /// Never used again.
    number: u64,
    client: ClientKey,
    text: Lookup,
}

/// Recent texts of every client, bounded in bytes over all of them; what was of use longest ago goes first.
#[derive(Debug)]
pub struct History {
    max_bytes: usize,
    /// From the one of use longest ago to the one of use last.
    texts: Vec<Finished>,
    /// Texts remembered so far.
    remembered: u64,
}

impl History {
    /// Room for about 150,000 tokens, which is plenty for the clients of one user.
    pub const DEFAULT_BYTES: usize = 8 << 20;

    /// An empty history that comes to take `max_bytes` at most; with 0 it remembers nothing.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            texts: Vec::new(),
            remembered: 0,
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
            .retain(|old| old.client != client || !text.tokens().starts_with(old.text.tokens()));
        self.remembered += 1;
        self.texts.push(Finished {
            number: self.remembered,
            client,
            text,
        });
        let too_many = self.of(client).nth_back(MAX_TEXTS);
        if let Some((oldest, _)) = too_many {
            self.texts.remove(oldest);
        }
        while self.bytes() > self.max_bytes {
            self.texts.remove(0);
        }
    }

    /// Guesses up to `max_len` tokens that follow `context` from the texts of `client`: from the longest match, of several
    /// the one in the text that was of use last; none where no match is longer than `exceed` tokens. `reader` is that of
    /// this context, which has only grown since.
    pub fn propose(
        &mut self,
        client: ClientKey,
        context: &[TokenId],
        reader: &mut Reader,
        exceed: usize,
        max_len: usize,
    ) -> Guess {
        let tail = &context[context.len().saturating_sub(TAIL)..];
        let mut before = std::mem::take(&mut reader.places);
        let new = context.get(reader.read..).unwrap_or_default();
        if new.len() > TAIL || reader.read > context.len() {
            before.clear();
        }
        reader.read = context.len();
        let mut best = None;
        for (index, Finished { number, text, .. }) in self.of(client) {
            let known = before.iter().find(|(read, _)| read == number);
            let (mut place, tokens) =
                known.map_or((Place::default(), tail), |known| (known.1, new));
            text.follow(&mut place, tokens);
            reader.places.push((*number, place));
            let length = text.matched(place);
            if length > Some(exceed) && best.is_none_or(|(longest, _, _)| length >= longest) {
                best = Some((length, index, place));
            }
        }
        let Some((_, index, place)) = best else {
            return Guess::default();
        };
        let guess = self.texts[index].text.propose_at(place, max_len);
        self.texts[index..].rotate_left(1);
        guess
    }

    /// The texts of `client` and where they are.
    fn of(&self, client: ClientKey) -> impl DoubleEndedIterator<Item = (usize, &Finished)> {
        let texts = self.texts.iter().enumerate();
        texts.filter(move |(_, text)| text.client == client)
    }

    /// Forgets every text and gives their memory back; room for others stays.
    pub fn clear(&mut self) {
        self.texts = Vec::new();
    }

    /// Forgets what `client` had.
    pub fn forget(&mut self, client: ClientKey) {
        self.texts.retain(|text| text.client != client);
    }

    /// Bytes allocated.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|old| old.text.bytes()).sum()
    }
}
