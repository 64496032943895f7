//! One answer of the service, and what it says about itself.

use std::time::Duration;

use tandem_client::v1::{GenerateComplete, Timings};
use tandem_client::{Client, Event, GenerateRequest};

use crate::BenchError;
use crate::report::Speculation;

/// Tokens of a sequence that counts as repeated when it comes again.
const SEQUENCE: usize = 8;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) token_ids: Vec<u32>,
    pub(super) prompt_tokens: u32,
    pub(super) first_token: f64,
    pub(super) decode: f64,
    pub(super) speculation: Speculation,
    /// Accepted, by position in the draft.
    pub(super) accepted: Vec<u64>,
}

impl Answer {
    /// Asks, and waits for the end.
    pub(super) async fn of(client: &Client, request: GenerateRequest) -> Result<Self, BenchError> {
        let generation = client.generate(request).await?.collect().await?;
        Ok(Self::new(generation.token_ids, generation.complete))
    }

    /// Asks, and calls `look` whenever it has become so many tokens longer, and short of its most likely end.
    pub(super) async fn watched(
        client: &Client,
        request: GenerateRequest,
        most_tokens: usize,
        mut look: impl AsyncFnMut(usize),
    ) -> Result<Self, BenchError> {
        const EVERY: usize = 64;
        let mut stream = client.generate(request).await?;
        let (mut token_ids, mut next) = (Vec::new(), 1);
        while let Some(event) = stream.next().await {
            match event? {
                Event::Chunk(chunk) => {
                    token_ids.extend(chunk.token_ids);
                    if token_ids.len() >= next {
                        look(token_ids.len()).await;
                        let near_end = most_tokens.saturating_sub(12);
                        next = token_ids.len() + EVERY;
                        if token_ids.len() < near_end {
                            next = next.min(near_end);
                        }
                    }
                }
                Event::Complete(complete) => return Ok(Self::new(token_ids, complete)),
            }
        }
        Err(tandem_client::Error::UnexpectedEnd.into())
    }

    fn new(token_ids: Vec<u32>, complete: GenerateComplete) -> Self {
        let timings: Timings = complete.timings.unwrap_or_default();
        let did = complete.speculation.unwrap_or_default();
        Self {
            token_ids,
            prompt_tokens: complete.usage.unwrap_or_default().prompt_tokens,
            first_token: seconds(timings.time_to_first_token),
            decode: seconds(timings.decode),
            accepted: did.accepted_per_position,
            speculation: Speculation {
                steps: did.steps.saturating_sub(1),
                drafted_steps: did.drafted_steps,
                drafted: did.draft_tokens,
                accepted: did.accepted_tokens,
                mean_length: did.mean_acceptance_length,
                draft: did.draft_seconds,
                verify: did.verify_seconds,
                accept: did.accept_seconds,
                cache_update: did.cache_update_seconds,
            },
        }
    }

    pub(super) fn tokens(&self) -> u32 {
        u32::try_from(self.token_ids.len()).unwrap_or(u32::MAX)
    }
}

fn seconds<D: TryInto<Duration>>(duration: Option<D>) -> f64 {
    duration
        .and_then(|duration| duration.try_into().ok())
        .unwrap_or_default()
        .as_secs_f64()
}

/// Returns the share of tokens that end a sequence of eight which occurred before.
pub(super) fn repeated(tokens: &[u32]) -> f64 {
    let mut seen = std::collections::HashSet::new();
    let sequences = tokens.windows(SEQUENCE);
    let again = sequences.filter(|sequence| !seen.insert(*sequence)).count();
    again as f64 / (tokens.len() as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_repeated_and_fresh_text_is_not() {
        let fresh: Vec<u32> = (0..100).collect();
        assert_eq!(repeated(&fresh), 0.0);
        let circle: Vec<u32> = (0..100).map(|token| token % 10).collect();
        assert_eq!(
            repeated(&circle),
            0.83,
            "the first 17 tokens hold every sequence once"
        );
        assert_eq!(repeated(&[]), 0.0);
    }
}
