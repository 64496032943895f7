//! How requests end, and what is said of them then.

use std::time::Instant;

use super::Engine;
use crate::policy::{DraftKind, SpeculationStats};
use crate::sequence::Sequence;
use crate::{FinishReason, Output, RequestStats};

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
        let positions = sequence.tokens.len();
        let costs = self.controller.costs();
        let plain = costs.step(1, positions);
        let drafters = self.drafters.iter();
        let drafter = drafters
            .filter(|drafter| stats.drafter == Some(drafter.name()))
            .map(|drafter| drafter.kind())
            .find(|kind| *kind != DraftKind::Lookup);
        Some(plain_steps(
            stats,
            sequence.draft_state.stats(),
            drafter.map(|kind| costs.round(kind, 1, positions) / plain),
            (costs.step(2, positions) - plain) / plain,
        ))
    }
}

/// Words why most steps had no draft. What became of drafts in other steps says nothing of these: they were drafted because they
/// were expected to be accepted. So what is told is what was decided, step by step, and what the decision weighs.
fn plain_steps(
    stats: &RequestStats,
    did: &SpeculationStats,
    round: Option<f64>,
    row: f64,
) -> String {
    let plain = stats.steps.saturating_sub(stats.drafted_steps);
    let rest = plain.saturating_sub(did.declined_steps + did.forced_bypasses);
    let costs = match round {
        Some(round) => format!(
            "one more token costs {:.2} plain steps, {round:.2} to draft and {row:.2} to verify",
            round + row
        ),
        None => format!("one more token costs {row:.2} plain steps to verify"),
    };
    let parts = [
        (
            did.declined_steps,
            format!("no draft was expected to save time ({costs})"),
        ),
        (
            did.forced_bypasses,
            "drafts had cost as much as they may".to_owned(),
        ),
        (
            rest,
            "there was nothing to draft from, or plain decoding was measured".to_owned(),
        ),
    ];
    let parts = parts.into_iter().filter(|(steps, _)| *steps > 0);
    let parts: Vec<String> = parts
        .map(|(steps, why)| format!("in {steps} {why}"))
        .collect();
    format!(
        "{plain} of {} steps were plain: {}",
        stats.steps,
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_adds_up_and_speaks_of_no_other_steps() {
        let stats = RequestStats {
            steps: 71,
            drafted_steps: 21,
            draft_tokens: 60,
            accepted_tokens: 49,
            ..RequestStats::default()
        };
        let did = SpeculationStats {
            declined_steps: 40,
            forced_bypasses: 3,
            ..SpeculationStats::default()
        };
        assert_eq!(
            plain_steps(&stats, &did, Some(0.31), 0.17),
            "50 of 71 steps were plain: in 40 no draft was expected to save time (one more token costs 0.48 plain steps, 0.31 \
             to draft and 0.17 to verify), in 3 drafts had cost as much as they may, in 7 there was nothing to draft from, or \
             plain decoding was measured"
        );
        let did = SpeculationStats {
            declined_steps: 50,
            ..SpeculationStats::default()
        };
        assert_eq!(
            plain_steps(&stats, &did, None, 0.17),
            "50 of 71 steps were plain: in 50 no draft was expected to save time (one more token costs 0.17 plain steps to \
             verify)"
        );
    }
}
