//! What a caller asks of the engine and what it hears back.

use std::time::Instant;

use tandem_model::TokenId;

use crate::policy::{DraftKind, SpeculationStats};
use crate::sampling::{SamplingParams, TokenLogprobs};
use crate::{ClientKey, SequenceId};

/// One generation, ready to be queued.
#[derive(Clone, Debug)]
pub struct Request {
    /// Prompt in the target's vocabulary, at least one token.
    pub prompt: Vec<TokenId>,
    /// How the next token is chosen.
    pub sampling: SamplingParams,
    /// When generation ends.
    pub stop: StopConditions,
    /// Whether drafting is allowed.
    pub speculation: bool,
    /// Who asks, where that is known: what a client had before helps to guess what it gets next. Never changes text.
    pub client: Option<ClientKey>,
    /// Which kinds of drafter may serve it, by [`DraftKind::ALL`]; `None`: all that the pair has.
    pub drafters: Option<[bool; DraftKind::COUNT]>,
    /// Drafted tokens per step in place of the policy's choice.
    pub draft_length: Option<usize>,
    /// Reports the log-probability of each token, and those of so many likeliest tokens at its position; `None`: neither.
    /// More than [`MAX_TOP_LOGPROBS`](crate::sampling::MAX_TOP_LOGPROBS) count as that many.
    pub logprobs: Option<usize>,
    /// Most continuations that a drafter may propose at one place, 1 for chains; `None`: as many as pay.
    pub draft_width: Option<usize>,
    /// Ends the request with [`FinishReason::TimeLimit`] at the first step that starts later.
    pub deadline: Option<Instant>,
    /// Randomness for requests without a seed; the engine has no other source.
    pub entropy: u64,
}

impl Request {
    /// A greedy request for up to `max_tokens` tokens that may draft.
    #[must_use]
    pub fn new(prompt: Vec<TokenId>, max_tokens: usize) -> Self {
        Self {
            prompt,
            sampling: SamplingParams::greedy(),
            stop: StopConditions {
                max_tokens: Some(max_tokens),
                ..StopConditions::default()
            },
            speculation: true,
            client: None,
            drafters: None,
            draft_length: None,
            logprobs: None,
            draft_width: None,
            deadline: None,
            entropy: 0,
        }
    }

    /// Whether a drafter of this kind may serve it.
    #[must_use]
    pub fn may_use(&self, kind: DraftKind) -> bool {
        self.speculation && self.drafters.is_none_or(|allowed| allowed[kind.index()])
    }
}

/// When generation ends, besides the context being full.
#[derive(Clone, Debug, Default)]
pub struct StopConditions {
    /// Most tokens to generate; `None`: what is left of the context.
    pub max_tokens: Option<usize>,
    /// Text that ends generation and is not part of the output.
    pub strings: Vec<String>,
    /// Tokens that end generation besides the model's own end tokens.
    pub token_ids: Vec<TokenId>,
    /// Goes on past the model's own end tokens.
    pub ignore_eos: bool,
}

/// One thing that happened to one request during a step.
#[derive(Clone, Debug)]
pub enum Output {
    /// The request left the queue and holds a cache.
    Admitted {
        /// Whose.
        id: SequenceId,
    },
    /// Tokens were committed.
    Tokens {
        /// Whose.
        id: SequenceId,
        /// The tokens, in order.
        token_ids: Vec<TokenId>,
        /// Text that became certain: whole UTF-8, never part of a stop string. May be empty.
        text: String,
        /// Of each token, where the request asks for them.
        logprobs: Vec<TokenLogprobs>,
    },
    /// The request failed, and no other for that; nothing more follows for it.
    Failed {
        /// Whose.
        id: SequenceId,
        /// Why.
        error: RequestFailure,
    },
    /// The request ended; nothing more follows for it.
    Finished {
        /// Whose.
        id: SequenceId,
        /// Why.
        reason: FinishReason,
        /// What it cost and what speculation did for it.
        stats: RequestStats,
    },
}

/// Why a request failed while others go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFailure {
    /// What the target computed is no number.
    #[error(
        "the target's logits for the token at position {position} have no finite maximum: some of its weights are too large for \
         it, or the device computes wrongly; pull the model again or choose another file, and see what `tandem doctor` says"
    )]
    NoFiniteLogits {
        /// Index of the token that could not be chosen, prompt included, from 0.
        position: usize,
    },
}

/// Why a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// An end token or a requested stop token.
    StopToken(TokenId),
    /// A stop string.
    StopString(String),
    /// `max_tokens` reached or the context full.
    Length,
    /// The deadline passed.
    TimeLimit,
}

/// Counters of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestStats {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens committed.
    pub completion_tokens: usize,
    /// Target steps that committed tokens.
    pub steps: u64,
    /// Steps of these that verified at least one drafted token.
    pub drafted_steps: u64,
    /// Tokens drafted and verified.
    pub draft_tokens: u64,
    /// Drafted tokens accepted.
    pub accepted_tokens: u64,
    /// Tokens that drafted steps committed, the recovered or bonus token counted.
    pub drafted_step_tokens: u64,
    /// Accepted drafted tokens by position in the draft.
    pub accepted_per_position: Vec<u64>,
    /// Costs and gains in detail; drafted tokens of siblings are counted here too.
    pub speculation: Box<SpeculationStats>,
    /// Which drafter served the request, if any did.
    pub drafter: Option<&'static str>,
    /// Why nothing was drafted, or not throughout; `None` where speculation ran all along.
    pub off_reason: Option<String>,
}

impl RequestStats {
    /// Tokens committed per drafted step, the recovered or bonus token counted; 0 where nothing was drafted.
    #[must_use]
    pub fn mean_acceptance_length(&self) -> f64 {
        if self.drafted_steps == 0 {
            0.0
        } else {
            self.drafted_step_tokens as f64 / self.drafted_steps as f64
        }
    }

    /// Share of steps without a draft, those counted that read the end of the prompt; 0 before the first.
    #[must_use]
    pub fn bypass_fraction(&self) -> f64 {
        (self.steps - self.drafted_steps) as f64 / (self.steps as f64).max(1.0)
    }
}
