//! How requests end, and what is said of them then.

use std::time::Instant;

use super::Engine;
use crate::policy::DraftKind;
use crate::sequence::Sequence;
use crate::{FinishReason, Output};

impl Engine {
    /// Ends requests whose time is up.
    pub(super) fn expire(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        let late = |sequence: &Sequence| {
            sequence
                .request
                .deadline
                .is_some_and(|deadline| deadline <= now)
        };
        while let Some(index) = self.waiting.iter().position(late) {
            if let Some(sequence) = self.waiting.remove(index) {
                self.finish(sequence, FinishReason::TimeLimit, outputs);
            }
        }
        while let Some(index) = self.running.iter().position(late) {
            let mut sequence = self.remove(index);
            let text = sequence.flush();
            if !text.is_empty() {
                outputs.push(Output::Tokens {
                    id: sequence.id,
                    token_ids: Vec::new(),
                    text,
                    logprobs: Vec::new(),
                });
            }
            self.finish(sequence, FinishReason::TimeLimit, outputs);
        }
    }

    /// Takes a running sequence out and frees its caches.
    pub(super) fn remove(&mut self, index: usize) -> Sequence {
        let mut sequence = self.running.remove(index);
        if let Some(slot) = sequence.slot.take() {
            self.target.close(slot);
        }
        for drafter in &mut self.drafters {
            drafter.release(sequence.id);
        }
        sequence
    }

    pub(super) fn finish(
        &self,
        sequence: Sequence,
        reason: FinishReason,
        outputs: &mut Vec<Output>,
    ) {
        let off_reason = self.why_plain(&sequence);
        let mut stats = sequence.stats;
        stats.speculation = Box::new(sequence.draft_state.stats().clone());
        stats.off_reason = off_reason;
        outputs.push(Output::Finished {
            id: sequence.id,
            reason,
            stats,
        });
    }

    /// Why a text is not one that the draft can draft for.
    fn beyond_reach(&self, sequence: &Sequence) -> Option<String> {
        let (tokens, largest) = (sequence.tokens.len(), sequence.largest);
        let mut allowed = self.drafters.iter();
        let beyond = allowed.find(|drafter| {
            sequence.request.may_use(drafter.kind()) && !drafter.reach().covers(tokens, largest)
        })?;
        let reach = beyond.reach();
        Some(match (largest as usize) < reach.vocabulary {
            true => format!(
                "the draft was trained for {} tokens and the text has {tokens}",
                reach.positions
            ),
            false => format!(
                "the draft has {} tokens and the text has token {largest}",
                reach.vocabulary
            ),
        })
    }

    /// Why a request was decoded plainly, or mostly so.
    fn why_plain(&self, sequence: &Sequence) -> Option<String> {
        let stats = &sequence.stats;
        if !sequence.request.speculation {
            return Some("the request turned it off".to_owned());
        }
        let expects_model = DraftKind::COMPUTING
            .into_iter()
            .any(|kind| sequence.request.may_use(kind));
        if let Some(reason) = self.off_reason.as_ref().filter(|_| expects_model) {
            return Some(reason.clone());
        }
        if stats.steps > 0 && stats.drafter.is_none() {
            return Some("the pair has no draft method that the request allows".to_owned());
        }
        if stats.steps == 0 || stats.drafted_steps * 2 >= stats.steps {
            return None;
        }
        if let Some(reason) = self.beyond_reach(sequence) {
            return Some(reason);
        }
        let accepted = match stats.draft_tokens {
            0 => String::new(),
            drafted => {
                format!(
                    " and {:.0} % of drafted tokens were accepted",
                    100.0 * stats.accepted_tokens as f64 / drafted as f64
                )
            }
        };
        let positions = sequence.tokens.len();
        Some(format!(
            "drafting did not pay in {} of {} steps: verifying two rows costs {:.2} plain steps{accepted}",
            stats.steps - stats.drafted_steps,
            stats.steps,
            self.controller.costs().step(2, positions) / self.controller.costs().step(1, positions),
        ))
    }
}
