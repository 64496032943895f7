//! One request while the engine works on it.

use std::sync::Arc;

use tandem_model::TokenId;
use tandem_model::detokenizer::Detokenizer;
use tandem_model::model::Slot;
use tandem_model::tokenizer::Tokenizer;

use crate::policy::DraftState;
use crate::sampling::Sampler;
use crate::{FinishReason, Request, RequestStats, SequenceId};

/// Tokens, text and state of one request.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) id: SequenceId,
    pub(crate) request: Request,
    /// Prompt and committed tokens.
    pub(crate) tokens: Vec<TokenId>,
    /// The largest of them.
    pub(crate) largest: TokenId,
    /// Tokens that may be generated in all.
    pub(crate) max_tokens: usize,
    pub(crate) sampler: Sampler,
    /// The target's cache; `None` while the request waits.
    pub(crate) slot: Option<Slot>,
    pub(crate) draft_state: DraftState,
    pub(crate) stats: RequestStats,
    detokenizer: Detokenizer,
}

/// What a step added to a sequence.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) token_ids: Vec<TokenId>,
    pub(crate) text: String,
    pub(crate) finish: Option<FinishReason>,
}

impl Sequence {
    pub(crate) fn new(
        id: SequenceId,
        request: Request,
        max_tokens: usize,
        tokenizer: &Arc<Tokenizer>,
    ) -> Self {
        let detokenizer = Detokenizer::new(Arc::clone(tokenizer), request.stop.strings.clone());
        let detokenizer = match request.prompt.last() {
            Some(last) => detokenizer.after(*last),
            None => detokenizer,
        };
        let stats = RequestStats {
            prompt_tokens: request.prompt.len(),
            ..RequestStats::default()
        };
        let mut tokens = Vec::with_capacity(request.prompt.len() + max_tokens);
        tokens.extend_from_slice(&request.prompt);
        Self {
            id,
            largest: request.prompt.iter().copied().max().unwrap_or(0),
            tokens,
            max_tokens,
            sampler: Sampler::new(request.sampling.clone(), &request.prompt, request.entropy),
            slot: None,
            draft_state: DraftState::default(),
            stats,
            detokenizer,
            request,
        }
    }

    /// Tokens that may still be generated.
    pub(crate) fn remaining(&self) -> usize {
        self.max_tokens - self.stats.completion_tokens
    }

    /// Positions that prompt and output can come to take.
    pub(crate) fn positions(&self) -> usize {
        self.request.prompt.len() + self.max_tokens
    }

    /// Takes chosen tokens one by one until something ends the request; what comes after that never happened.
    pub(crate) fn commit(
        &mut self,
        chosen: impl IntoIterator<Item = TokenId>,
        end_tokens: &[TokenId],
    ) -> Commit {
        let mut commit = Commit {
            token_ids: Vec::new(),
            text: String::new(),
            finish: None,
        };
        for token in chosen {
            self.tokens.push(token);
            self.largest = self.largest.max(token);
            self.sampler.commit(token);
            self.stats.completion_tokens += 1;
            commit.token_ids.push(token);
            let stop = &self.request.stop;
            if stop.token_ids.contains(&token) || (!stop.ignore_eos && end_tokens.contains(&token))
            {
                commit.finish = Some(FinishReason::StopToken(token));
                break;
            }
            if let Some(which) = self.detokenizer.push_onto(token, &mut commit.text) {
                commit.finish = Some(FinishReason::StopString(stop.strings[which].clone()));
                break;
            }
            if self.remaining() == 0 {
                commit.finish = Some(FinishReason::Length);
                break;
            }
        }
        if commit
            .finish
            .as_ref()
            .is_some_and(|finish| !matches!(finish, FinishReason::StopString(_)))
        {
            commit.text.push_str(&self.detokenizer.finish());
        }
        commit
    }

    /// Text that was held back, where the request ends without another token.
    pub(crate) fn flush(&mut self) -> String {
        self.detokenizer.finish()
    }
}
