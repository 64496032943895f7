//! The step loop: schedule → draft → one forward of the target over all rows → verify → commit or roll back.

mod admission;
mod ahead;
mod drafting;
mod ending;
mod learning;
mod rehearsal;
mod residency;
mod settle;
mod step;

use tandem_model::TokenId;
use tandem_model::model::{LanguageModel, ModelError};
use tandem_model::tokenizer::Tokenizer;

pub use residency::{CacheClaims, ShedDraft};

use std::collections::VecDeque;
use std::sync::Arc;

use crate::draft::{Drafter, LookupDrafter};
use crate::pair::ModelPair;
use crate::policy::{
    Controller, Pipelined, Policy, Protection, SpeculationStats, StepCost, StepReport,
};
use crate::sampling::InvalidParam;
use crate::sequence::Sequence;
use crate::{Request, SequenceId};

/// Limits of one engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Requests that run at once; others wait.
    pub max_sequences: usize,
    /// Rows of one forward, prompt chunks included.
    pub max_step_rows: usize,
    /// Bytes that all caches together may come to take.
    pub cache_budget: u64,
    /// How much is drafted.
    pub policy: Policy,
    /// When a draft is continued while the target verifies it.
    pub pipelined: Pipelined,
    /// Bytes of finished texts that are searched for what comes next, over all clients; `None`: nothing is searched, not
    /// even a request's own text.
    pub lookup_history: Option<usize>,
}

/// Why a request is refused at once.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nothing to continue.
    #[error("the prompt has no tokens; give at least one")]
    EmptyPrompt,
    /// Prompt and output do not fit the context.
    #[error("{}", overflow(*prompt_tokens, *max_tokens, *context_length))]
    ContextOverflow {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens asked for.
        max_tokens: usize,
        /// Tokens there is room for.
        context_length: usize,
    },
    /// A parameter out of range.
    #[error(transparent)]
    InvalidParam(#[from] InvalidParam),
    /// A prompt token that the target does not have.
    #[error("token {token} is beyond the target's vocabulary of {vocabulary} tokens")]
    TokenOutOfVocabulary {
        /// The token.
        token: TokenId,
        /// Tokens there are.
        vocabulary: usize,
    },
    /// The request's cache alone exceeds the budget.
    #[error(
        "the request may need {needed_bytes} bytes of cache and the budget leaves {available_bytes}; \
         lower max_tokens or raise memory.budget"
    )]
    CacheTooLarge {
        /// Bytes at full length.
        needed_bytes: u64,
        /// Bytes there can be.
        available_bytes: u64,
    },
}

/// Without a limit, a request comes to one token where its prompt fills the context; then nobody asked for that one.
fn overflow(prompt_tokens: usize, max_tokens: usize, context_length: usize) -> String {
    if prompt_tokens >= context_length || max_tokens <= 1 {
        return format!(
            "a prompt of {prompt_tokens} tokens leaves no room for an answer in a context of {context_length} tokens; shorten \
             the prompt"
        );
    }
    format!(
        "a prompt of {prompt_tokens} tokens and {max_tokens} more do not fit a context of {context_length} tokens; shorten \
         the prompt or lower max_tokens"
    )
}

/// The target failed; every running request is lost.
#[derive(Debug, thiserror::Error)]
#[error("the target failed in a step of {rows} rows: {source}")]
pub struct StepError {
    rows: usize,
    source: ModelError,
}

/// Bytes held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The target's weights.
    pub target_weights: u64,
    /// The draft's weights, or the exit adapter's.
    pub draft_weights: u64,
    /// Bytes of prepared weights of both that are mapped: the system can have these pages back at any time.
    pub mapped_weights: u64,
    /// The target's caches.
    pub target_kv: u64,
    /// The draft's caches, or the exit adapter's.
    pub draft_kv: u64,
}

/// One resident pair and the requests on it.
pub struct Engine {
    target: Box<dyn LanguageModel>,
    target_bytes: u64,
    target_mapped_bytes: u64,
    /// In the order in which they draft: the search in the text, then what takes forwards.
    drafters: Vec<Box<dyn Drafter>>,
    /// Why there is no model that drafts.
    off_reason: Option<String>,
    tokenizer: Arc<Tokenizer>,
    context_length: usize,
    options: EngineOptions,
    /// Bytes that caches may come to take just now, where others leave less than the options allow.
    cache_room: u64,
    /// Most requests that may run at once while no more are to join.
    held: Option<usize>,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    controller: Controller,
    next_id: u64,
    steps: u64,
    last_step: Option<StepReport>,
    /// Memory for the next step.
    step: step::Step,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("running", &self.running.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Makes an engine of a loaded pair.
    #[must_use]
    pub fn new(pair: ModelPair, options: EngineOptions) -> Self {
        let parts = pair.into_parts();
        let lookup = options
            .lookup_history
            .map(|bytes| -> Box<dyn Drafter> { Box::new(LookupDrafter::new(bytes)) });
        Self {
            target: parts.target,
            target_bytes: parts.target_bytes,
            target_mapped_bytes: parts.target_mapped_bytes,
            off_reason: parts
                .drafter
                .is_none()
                .then(|| "the pair has no draft".to_owned()),
            drafters: lookup.into_iter().chain(parts.drafter).collect(),
            tokenizer: parts.tokenizer,
            context_length: parts.context_length,
            controller: Controller::new(options.policy, Protection::default())
                .pipelined(options.pipelined),
            cache_room: options.cache_budget,
            held: None,
            options,
            waiting: VecDeque::new(),
            running: Vec::new(),
            next_id: 0,
            steps: 0,
            last_step: None,
            step: step::Step::default(),
        }
    }

    /// Takes a request into the queue.
    ///
    /// # Errors
    /// Where it can never run: see [`RequestError`]. Nothing is queued then.
    pub fn submit(&mut self, request: Request) -> Result<SequenceId, RequestError> {
        let max_tokens = self.check(&request)?;
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        self.waiting
            .push_back(Sequence::new(id, request, max_tokens, &self.tokenizer));
        Ok(id)
    }

    /// Ends a request without another output. Unknown and finished ones are ignored.
    pub fn cancel(&mut self, id: SequenceId) {
        self.waiting.retain(|sequence| sequence.id != id);
        if let Some(index) = self.running.iter().position(|sequence| sequence.id == id) {
            self.remove(index);
        }
    }

    /// Whether a step would do anything.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.running.is_empty() || !self.waiting.is_empty()
    }

    /// Requests that run and requests that wait.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.running.len(), self.waiting.len())
    }

    /// Forwards of the target since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What the engine holds.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        MemoryUse {
            target_weights: self.target_bytes,
            draft_weights: self.drafters.iter().map(|d| d.weight_bytes()).sum(),
            mapped_weights: self.target_mapped_bytes
                + self.drafters.iter().map(|d| d.mapped_bytes()).sum::<u64>(),
            target_kv: self.target.cache_bytes(),
            draft_kv: self
                .drafters
                .iter()
                .map(|drafter| drafter.cache_bytes(&*self.target))
                .sum(),
        }
    }

    /// Why the engine decodes plainly, where it does.
    #[must_use]
    pub fn speculation_off_reason(&self) -> Option<&str> {
        self.off_reason.as_deref()
    }

    /// The tokenizer of both models.
    #[must_use]
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Chooses otherwise how much is drafted, from the next step on. What was learned stays.
    pub fn set_policy(&mut self, policy: Policy) {
        self.controller.set_policy(policy);
    }

    /// What speculation did so far, over all requests.
    #[must_use]
    pub fn speculation(&self) -> &SpeculationStats {
        self.controller.stats()
    }

    /// What the latest step did; `None` where it chose no token or nothing can draft.
    #[must_use]
    pub fn last_step(&self) -> Option<&StepReport> {
        self.last_step.as_ref()
    }

    /// What decoding steps cost, as measured so far.
    #[must_use]
    pub fn step_costs(&self) -> Vec<StepCost> {
        self.controller.costs().measured_steps()
    }
}
