//! The drafter over a request's own text and its client's history.

use std::collections::HashMap;

use super::{ClientKey, Guess, History, Lookup, MAX_BYTES_PER_TOKEN, Reader};
use crate::draft::{CatchUp, DraftRequest, Drafter, Drafting, Origin};
use crate::model::{LanguageModel, ModelError};
use crate::policy::{DraftKind, Evidence, MAX_DRAFT_LENGTH};
use crate::{SequenceId, TokenId};

/// Tokens of match that it is worth when a long match broke off a moment ago and the guess goes on beside it.
const RESUMED: usize = 2;

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
    fn kind(&self) -> DraftKind {
        DraftKind::Lookup
    }

    fn name(&self) -> &'static str {
        "lookup"
    }

    fn draft(
        &mut self,
        step: Drafting<'_>,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<CatchUp, ModelError> {
        for request in requests {
            let guess = self.guess(request.id, request.client, request.tokens, MAX_DRAFT_LENGTH);
            let bonus = if guess.resumed { RESUMED } else { 0 };
            let match_length = guess.match_length + bonus;
            let guessed = guess.tokens.len();
            let length = step.plan.offer_guess(request.seat, match_length, guessed);
            let mut parent = None;
            for (depth, &token) in guess.tokens[..length].iter().enumerate() {
                let origin = Origin {
                    kind: DraftKind::Lookup,
                    depth,
                    sibling: 0,
                    evidence: Evidence::Match(match_length + depth),
                };
                parent = Some(request.proposal.push(token, parent, None, origin));
            }
        }
        Ok(CatchUp::default())
    }

    fn behind(&self, _id: SequenceId, _tokens: usize) -> usize {
        0
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

    fn cache_bytes(&self, _target: &dyn LanguageModel) -> u64 {
        let sequences = self.sequences.values();
        let own: usize = sequences.map(|own| own.text.bytes()).sum();
        (own + self.history.bytes()) as u64
    }

    fn cache_bytes_per_position(&self) -> u64 {
        MAX_BYTES_PER_TOKEN as u64
    }
}
