//! The drafter over a request's own text and its client's history.

use std::collections::HashMap;

use super::{ClientKey, Guess, History, Lookup, MAX_BYTES_PER_TOKEN, Reader};
use crate::draft::{DraftRequest, Drafter};
use crate::model::ModelError;
use crate::verify::Draft;
use crate::{SequenceId, TokenId};

/// Drafts what followed the last time. Keeps an index per sequence, which becomes history of its client when the sequence
/// is released.
#[derive(Debug)]
pub struct LookupDrafter {
    sequences: HashMap<SequenceId, Sequence>,
    history: History,
}

/// What is kept of a sequence.
#[derive(Debug, Default)]
struct Sequence {
    text: Lookup,
    client: Option<ClientKey>,
    /// Where it stands in the history of its client.
    reader: Reader,
}

impl LookupDrafter {
    /// A drafter whose history takes `history_bytes` at most, over all clients.
    #[must_use]
    pub fn new(history_bytes: usize) -> Self {
        Self {
            sequences: HashMap::new(),
            history: History::new(history_bytes),
        }
    }

    /// Guesses up to `max_len` tokens that follow `tokens`, all of the sequence so far; with 0 only keeps up. Without a
    /// client the sequence neither uses nor becomes history.
    pub fn guess(
        &mut self,
        id: SequenceId,
        client: Option<ClientKey>,
        tokens: &[TokenId],
        max_len: usize,
    ) -> Guess {
        let own = self.sequences.entry(id).or_default();
        if !tokens.starts_with(own.text.tokens()) || own.client != client {
            *own = Sequence::default();
        }
        own.client = client;
        own.text.extend(&tokens[own.text.tokens().len()..]);
        let guess = own.text.propose(max_len);
        match client {
            // Going on with a copy is better than what merely resembles the text.
            Some(client) if max_len > 0 && !guess.resumed => {
                let (reader, exceed) = (&mut own.reader, guess.match_length);
                let history = &mut self.history;
                let other = history.propose(client, tokens, reader, exceed, max_len);
                if other.tokens.is_empty() {
                    guess
                } else {
                    other
                }
            }
            _ => guess,
        }
    }

    /// What clients had before.
    pub fn history(&mut self) -> &mut History {
        &mut self.history
    }
}

impl Drafter for LookupDrafter {
    fn name(&self) -> &'static str {
        "lookup"
    }

    fn draft(&mut self, requests: &mut [DraftRequest<'_>]) -> Result<Vec<Draft>, ModelError> {
        let guesses = requests.iter().map(|request| {
            self.guess(request.id, None, request.tokens, request.max_len)
                .tokens
        });
        Ok(guesses.map(Draft::chain).collect())
    }

    fn release(&mut self, id: SequenceId) {
        let Some(sequence) = self.sequences.remove(&id) else {
            return;
        };
        if let Some(client) = sequence.client {
            self.history.remember(client, sequence.text);
        }
    }

    fn weight_bytes(&self) -> u64 {
        0
    }

    fn cache_bytes(&self) -> u64 {
        let sequences = self.sequences.values();
        let own: usize = sequences.map(|own| own.text.bytes()).sum();
        (own + self.history.bytes()) as u64
    }

    fn cache_bytes_per_position(&self) -> u64 {
        MAX_BYTES_PER_TOKEN as u64
    }
}
