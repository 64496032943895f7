//! Which requests may run: checks at the door, and the cache budget.

use tandem_model::model::ModelError;

use super::{Engine, RequestError};
use crate::sequence::Sequence;
use crate::{Output, Request};

impl Engine {
    /// Checks a request and returns how many tokens it may generate.
    pub(super) fn check(&self, request: &Request) -> Result<usize, RequestError> {
        let vocabulary = self.target.config().vocabulary;
        let (prompt_tokens, context_length) = (request.prompt.len(), self.context_length);
        if prompt_tokens == 0 {
            return Err(RequestError::EmptyPrompt);
        }
        request.sampling.validate(vocabulary)?;
        if let Some(token) = request
            .prompt
            .iter()
            .find(|token| **token as usize >= vocabulary)
        {
            return Err(RequestError::TokenOutOfVocabulary {
                token: *token,
                vocabulary,
            });
        }
        let max_tokens = request
            .stop
            .max_tokens
            .unwrap_or(context_length.saturating_sub(prompt_tokens))
            .max(1);
        if prompt_tokens.saturating_add(max_tokens) > context_length {
            return Err(RequestError::ContextOverflow {
                prompt_tokens,
                max_tokens,
                context_length,
            });
        }
        let needed_bytes = self.cache_bytes(prompt_tokens + max_tokens);
        if needed_bytes > self.options.cache_budget {
            return Err(RequestError::CacheTooLarge {
                needed_bytes,
                available_bytes: self.options.cache_budget,
            });
        }
        Ok(max_tokens)
    }

    /// Bytes that a sequence of so many positions takes in the target's and the draft's caches.
    pub(super) fn cache_bytes(&self, positions: usize) -> u64 {
        let draft: u64 = self
            .drafters
            .iter()
            .map(|drafter| drafter.cache_bytes_per_position())
            .sum();
        (self.target.cache_bytes_per_position() + draft) * positions as u64
    }

    /// Requests that may run at once.
    pub(super) fn most_at_once(&self) -> usize {
        let most = self.options.max_sequences;
        self.held.map_or(most, |held| held.min(most))
    }

    /// Bytes that the caches of the running requests take at full length.
    pub(super) fn reserved(&self) -> u64 {
        let lengths = self.running.iter().map(Sequence::positions);
        lengths.map(|length| self.cache_bytes(length)).sum()
    }

    /// Lets waiting requests run, first come first served, while there is room for their full length.
    pub(super) fn admit(&mut self, outputs: &mut Vec<Output>) -> Result<(), ModelError> {
        while let Some(next) = self.waiting.front() {
            if self.running.len() >= self.most_at_once() {
                break;
            }
            let idle = self.running.is_empty();
            let needed = self.reserved() + self.cache_bytes(next.positions());
            // Where nobody else has a cache, what passed the door fits, whatever the draft has come to add since.
            let alone = idle && self.cache_room >= self.options.cache_budget;
            if needed > self.cache_room && !alone {
                break;
            }
            let slot = self.target.open()?;
            let Some(mut sequence) = self.waiting.pop_front() else {
                break;
            };
            sequence.slot = Some(slot);
            let mut drafters = self.drafters.iter().rev();
            sequence.stats.drafter = drafters
                .find(|drafter| sequence.request.may_use(drafter.kind()))
                .map(|drafter| drafter.name());
            outputs.push(Output::Admitted { id: sequence.id });
            self.running.push(sequence);
        }
        Ok(())
    }
}
