//! The long prompt: time to first token of a daemon that has just started, sustained speed, and memory.
//!
//! Each method gets a daemon that has nothing but what the method needs, and asks it once; so its memory is the method's.

use std::time::Instant;

use tandem_client::v1::{MemoryStatus, TokenizeRequest};
use tandem_client::{Client, GenerateRequest};

use super::Bench;
use super::answer::Answer;
use crate::BenchError;
use crate::method::{Method, Serving};
use crate::prompts::LONG;
use crate::report::{Long, Memory};

/// Tokens generated where a context is filled to see what it takes.
const FILL_TOKENS: u32 = 16;
/// Times that an answer is asked again because it was complete before its memory could be read.
const LOOK_AGAIN: usize = 3;

impl Bench<'_> {
    pub(super) async fn long(&mut self) -> Result<(), BenchError> {
        // Daemons that share the machine would share its caches.
        self.fleet.end();
        let rounds = self.extent().long_rounds;
        self.begin("asking the long prompt", rounds * self.methods.len());
        let (began, mut round) = (Instant::now(), 0);
        while self.another(round, rounds, began) {
            for method in self.order(round) {
                self.ask_long(method, round).await?;
                self.part();
            }
            round += 1;
        }
        Ok(())
    }

    async fn ask_long(&mut self, method: Method, round: usize) -> Result<(), BenchError> {
        let private = self.fleet.is_private();
        let serving = method.alone(self.fleet.usual());
        let daemon = if private {
            Some(self.fleet.start(serving).await?)
        } else {
            None
        };
        let client = match &daemon {
            Some(daemon) => daemon.client().clone(),
            None => self.fleet.shared(method).await?,
        };
        let most = self.extent().long_tokens;
        let request = GenerateRequest::user(LONG)
            .max_tokens(most)
            .pair(self.fleet.pair_name());
        let before = self.meter.joules();
        let (answer, seen) = self.watched(&client, method.apply(request), most).await?;
        let joules = before.and_then(|before| Some(self.meter.joules()? - before));
        self.report.long.push(Long {
            method,
            cold: private,
            start: daemon
                .as_ref()
                .map(|daemon| daemon.started_after().as_secs_f64()),
            prompt_tokens: answer.prompt_tokens,
            tokens: answer.tokens(),
            first_token: answer.first_token,
            decode: answer.decode,
            joules,
            speculation: answer.speculation,
        });
        if round > 0 {
            return Ok(());
        }
        let mut seen = match self.setup.context {
            Some(context) => self.fill(&client, method, context).await?,
            None => seen,
        };
        for _ in 0..LOOK_AGAIN {
            if seen.pair.target_kv > 0 {
                break;
            }
            let request = GenerateRequest::user(LONG)
                .max_tokens(most)
                .pair(self.fleet.pair_name());
            (_, seen) = self.watched(&client, method.apply(request), most).await?;
        }
        self.remember(private.then_some(serving), seen);
        Ok(())
    }

    /// Fills the context with the long prompt, over and over.
    async fn fill(
        &mut self,
        client: &Client,
        method: Method,
        context: u32,
    ) -> Result<Seen, BenchError> {
        let wanted = context.saturating_sub(FILL_TOKENS).max(1) as usize;
        let request = TokenizeRequest {
            pair: self.fleet.pair_name().to_owned(),
            text: LONG.to_owned(),
            ..Default::default()
        };
        let ids = client.tokenize(request).await?.token_ids;
        let ids: Vec<u32> = ids.into_iter().cycle().take(wanted).collect();
        let request = GenerateRequest::token_ids(ids)
            .max_tokens(FILL_TOKENS)
            .ignore_eos(true)
            .pair(self.fleet.pair_name());
        let (_, seen) = self
            .watched(client, method.apply(request), FILL_TOKENS)
            .await?;
        Ok(seen)
    }

    /// Asks, and looks at the daemon's memory now and then.
    async fn watched(
        &mut self,
        client: &Client,
        request: GenerateRequest,
        most_tokens: u32,
    ) -> Result<(Answer, Seen), BenchError> {
        let fleet = &mut self.fleet;
        let mut seen = Seen::default();
        let look = async |tokens: usize| {
            // A reading that fails leaves out a row of a table; the answer is worth having without it.
            if let Ok((status, pair)) = fleet.status(client).await {
                seen.add(
                    tokens,
                    status.memory.unwrap_or_default(),
                    pair.memory.unwrap_or_default(),
                );
            }
        };
        let answer = Answer::watched(client, request, most_tokens as usize, look).await?;
        seen.prompt_tokens = answer.prompt_tokens;
        Ok((answer, seen))
    }

    fn remember(&mut self, serving: Option<Serving>, seen: Seen) {
        if self
            .report
            .memory
            .iter()
            .any(|memory| memory.serving == serving)
        {
            return;
        }
        self.report.memory.push(Memory {
            serving,
            context: seen.prompt_tokens + seen.tokens,
            peak_footprint: seen.footprint,
            mapped_weights: seen.mapped,
            budget: seen.budget,
            weights: seen.pair.target_weights,
            kv: seen.pair.target_kv,
            draft_weights: seen.pair.draft_weights,
            draft_kv: seen.pair.draft_kv,
        });
    }
}

/// What was seen of a daemon's memory during an answer.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    prompt_tokens: u32,
    /// Tokens of the answer when most was held.
    tokens: u32,
    footprint: u64,
    mapped: u64,
    budget: u64,
    /// The reading that held most.
    pair: MemoryStatus,
}

impl Seen {
    fn add(&mut self, tokens: usize, daemon: MemoryStatus, pair: MemoryStatus) {
        self.footprint = self.footprint.max(daemon.footprint);
        self.mapped = self.mapped.max(daemon.mapped_weights);
        self.budget = daemon.budget;
        // A look that came after the end of the request finds its caches gone.
        let held = |memory: MemoryStatus| memory.target_kv + memory.draft_kv;
        if held(pair) >= held(self.pair) {
            self.tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
            self.pair = pair;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_after_the_end_does_not_hide_what_was_held() {
        let daemon = |footprint| MemoryStatus {
            footprint,
            budget: 9,
            ..Default::default()
        };
        let pair = |target_kv| MemoryStatus {
            target_kv,
            ..Default::default()
        };
        let mut seen = Seen::default();
        seen.add(1, daemon(5), pair(100));
        seen.add(240, daemon(8), pair(400));
        seen.add(250, daemon(6), pair(0));
        assert_eq!((seen.tokens, seen.pair.target_kv), (240, 400));
        assert_eq!((seen.footprint, seen.budget), (8, 9));
    }
}
