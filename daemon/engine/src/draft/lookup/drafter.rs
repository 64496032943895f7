//! The drafter over a request's own text and its client's history.

use std::cmp::Reverse;
use std::collections::HashMap;

use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, ModelError};

use super::{Guess, History, Lookup, MAX_BYTES_PER_TOKEN, Reader};
use crate::draft::{DraftRequest, Drafter, Drafting, Origin};
use crate::policy::{CatchUp, DraftKind, Evidence, StepPlan};
use crate::{ClientKey, SequenceId};

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

    /// Guesses up to `max_len` tokens that follow `tokens`, all of the sequence so far; with 0 only keeps up. The better
    /// guess comes first, and a second begins with another token. Without a client the sequence neither uses nor becomes
    /// history.
    pub fn guess(
        &mut self,
        id: SequenceId,
        client: Option<ClientKey>,
        tokens: &[TokenId],
        max_len: usize,
    ) -> Vec<Guess> {
        let own = self.sequences.entry(id).or_default();
        if !tokens.starts_with(own.text.tokens()) || own.client != client {
            *own = Sequence::default();
        }
        own.client = client;
        own.text.extend(&tokens[own.text.tokens().len()..]);
        if max_len == 0 {
            return Vec::new();
        }
        let first = own.text.propose(max_len);
        let second = own.text.alternative(&first, max_len);
        let mut guesses = vec![first, second];
        if let Some(client) = client {
            let (reader, history) = (&mut own.reader, &mut self.history);
            guesses.push(history.propose(client, tokens, reader, 0, max_len));
        }
        guesses.retain(|guess| !guess.tokens.is_empty());
        // Going on with a copy is better than what merely resembles the text. Of equal matches the request's own is.
        guesses.sort_by_key(|guess| Reverse((guess.resumed, guess.match_length)));
        guesses.dedup_by_key(|guess| guess.tokens[0]);
        guesses.truncate(2);
        guesses
    }

    /// What clients had before.
    pub fn history(&mut self) -> &mut History {
        &mut self.history
    }
}

/// Adds as much of a guess as pays; `sibling` guesses were proposed before it.
fn propose(plan: &mut StepPlan, request: &mut DraftRequest<'_>, sibling: usize, guess: &Guess) {
    let bonus = if guess.resumed { RESUMED } else { 0 };
    let match_length = guess.match_length + bonus;
    let length = plan.offer_guess(request.seat, match_length, guess.tokens.len());
    let mut parent = None;
    for (depth, &token) in guess.tokens[..length].iter().enumerate() {
        // How often a second guess is right where it begins says nothing about matches: the first had its turn.
        let second = sibling > 0 && depth == 0;
        let origin = Origin {
            kind: DraftKind::Lookup,
            depth,
            sibling: if second { sibling } else { 0 },
            evidence: match second {
                true => Evidence::None,
                false => Evidence::Match(match_length + depth),
            },
        };
        parent = Some(request.proposal.push(token, parent, None, origin));
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
            let longest = step.plan.longest(request.seat);
            let guesses = self.guess(request.id, request.client, request.tokens, longest);
            // The plan is asked once even where there is nothing to guess.
            let none = guesses.is_empty().then(Guess::default);
            for (sibling, guess) in guesses.into_iter().chain(none).enumerate() {
                propose(step.plan, request, sibling, &guess);
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

    fn trim(&mut self) {
        self.history.clear();
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
