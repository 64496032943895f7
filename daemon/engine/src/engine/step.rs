//! One step.

use std::time::Instant;

use tandem_model::TokenId;
use tandem_model::logits::LogitsRow;
use tandem_model::model::{ModelError, Row, Slot};

use super::{Engine, StepError, ahead};
use crate::draft::Proposal;
use crate::policy::{DraftTime, NodeOutcome, StepPlan};
use crate::sampling::{MAX_TOP_LOGPROBS, TokenLogprobs};
use crate::sequence::Sequence;
use crate::verify::{Draft, Verdict, verify};
use crate::{FinishReason, Output, RequestFailure};

/// One sequence's part of a step.
#[derive(Debug)]
pub(super) struct Share {
    /// Index among the running sequences.
    pub(super) index: usize,
    /// Pending tokens that are fed.
    pub(super) take: usize,
    /// Whether that is all of them, so that a token is chosen.
    pub(super) complete: bool,
    pub(super) proposal: Proposal,
    /// Index of its first row's logits among the wanted ones.
    first_logits: usize,
    /// Its place in the plan, where it decodes and there is a drafter.
    pub(super) seat: Option<usize>,
    /// What became of the draft, where a token is chosen.
    pub(super) verdict: Option<Verdict>,
    /// Of the chosen tokens, where the request asks for them.
    pub(super) logprobs: Vec<TokenLogprobs>,
    /// Tokens committed.
    pub(super) committed: usize,
}

/// What a step works on; its memory is kept for the next.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// Decoding sequences first, then prompts, oldest first.
    order: Vec<usize>,
    pub(super) shares: Vec<Share>,
    pub(super) plan: StepPlan,
    /// What each drafter took.
    pub(super) draft_times: Vec<DraftTime>,
    /// What became of the drafted tokens of one sequence.
    pub(super) nodes: Vec<NodeOutcome>,
    pub(super) rows: Vec<Row>,
    /// Rows whose logits are needed.
    pub(super) want: Vec<usize>,
    finished: Vec<(usize, FinishReason)>,
    /// Sequences for which no token could be chosen.
    failed: Vec<usize>,
}

impl Engine {
    /// Advances every running request by one forward of the target and says what happened. `clock` is read a few
    /// times to learn what steps cost. A plain step that is like those before it allocates what it returns, and nothing
    /// else.
    ///
    /// # Errors
    /// Where the target fails. The requests that were running are lost; the engine must not be used further.
    pub fn step(&mut self, clock: &dyn Fn() -> Instant) -> Result<Vec<Output>, StepError> {
        let mut outputs = Vec::new();
        let mut step = std::mem::take(&mut self.step);
        let result = self.advance(&mut step, clock, &mut outputs);
        let rows = step.rows.len();
        step.shares.clear();
        step.finished.clear();
        step.failed.clear();
        self.step = step;
        match result {
            Ok(()) => Ok(outputs),
            Err(source) => Err(StepError { rows, source }),
        }
    }

    fn advance(
        &mut self,
        step: &mut Step,
        clock: &dyn Fn() -> Instant,
        outputs: &mut Vec<Output>,
    ) -> Result<(), ModelError> {
        step.rows.clear();
        step.draft_times.clear();
        self.expire(clock(), outputs);
        self.admit(outputs)?;
        if self.running.is_empty() {
            return Ok(());
        }

        self.schedule(step);
        self.draft(step, clock);

        self.rows(step);
        let drafted = clock();
        let prepared = self.target.preparations();
        let (target, drafters) = (&mut *self.target, &mut self.drafters);
        let (logits, lost) = ahead::forward(target, drafters, &self.running, step)?;
        let verified = clock();
        self.steps += 1;
        for share in step.shares.iter_mut().filter(|share| share.complete) {
            let sequence = &mut self.running[share.index];
            let row = |node: Option<usize>| {
                logits.at(share.first_logits + node.map_or(0, |node| node + 1))
            };
            let (sampler, position) = (&mut sequence.sampler, sequence.tokens.len());
            let verdict = verify(share.proposal.draft(), sampler, position, row);
            if !is_decided(share.proposal.draft(), &verdict, row) {
                step.failed.push(share.index);
                continue;
            }
            if let Some(top) = sequence.request.logprobs {
                share.logprobs = logprobs(share.proposal.draft(), &verdict, top, row);
            }
            share.verdict = Some(verdict);
        }
        logits.arrived()?;
        let accepted = clock();
        let cold = self.target.preparations() > prepared;
        if let Some((index, error)) = lost {
            self.lose_drafter(index, &error);
        }
        for share in &mut step.shares {
            let (committed, finish) = self.settle(share, outputs)?;
            share.committed = committed;
            step.finished
                .extend(finish.map(|reason| (share.index, reason)));
        }
        self.learn(step, [drafted, verified, accepted, clock()], cold);

        let finished = step.finished.drain(..);
        let finished = finished.map(|(index, reason)| (index, Some(reason)));
        let failed = step.failed.drain(..).map(|index| (index, None));
        let mut ended: Vec<_> = finished.chain(failed).collect();
        ended.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
        for (index, reason) in ended {
            let sequence = self.remove(index);
            match reason {
                Some(reason) => self.finish(sequence, reason, outputs),
                None => outputs.push(Output::Failed {
                    id: sequence.id,
                    error: RequestFailure::NoFiniteLogits {
                        position: sequence.tokens.len(),
                    },
                }),
            }
        }
        Ok(())
    }

    /// Shares the rows of the step: decoding sequences first, then prompts, oldest first.
    fn schedule(&self, step: &mut Step) {
        let Step { order, shares, .. } = step;
        let pending = |index: usize| {
            let sequence = &self.running[index];
            sequence.tokens.len() - self.cached(sequence)
        };
        let all = 0..self.running.len();
        order.clear();
        order.extend(all.clone().filter(|index| pending(*index) <= 1));
        order.extend(all.filter(|index| pending(*index) > 1));
        let mut room = self.options.max_step_rows.max(self.running.len());
        for &index in &*order {
            let pending = pending(index);
            let take = pending.min(room);
            if take == 0 {
                break;
            }
            room -= take;
            shares.push(Share {
                index,
                take,
                complete: take == pending,
                proposal: Proposal::default(),
                first_logits: 0,
                seat: None,
                verdict: None,
                logprobs: Vec::new(),
                committed: 0,
            });
        }
    }

    fn cached(&self, sequence: &Sequence) -> usize {
        sequence.slot.map_or(0, |slot| self.target.cached(slot))
    }

    /// The rows of the step and which of them need logits: the last pending token of each sequence that chooses, and
    /// its drafted tokens.
    fn rows(&self, step: &mut Step) {
        let Step {
            shares, rows, want, ..
        } = step;
        want.clear();
        for share in shares {
            let sequence = &self.running[share.index];
            let slot = slot(sequence);
            let cached = self.target.cached(slot);
            let pending = &sequence.tokens[cached..cached + share.take];
            rows.extend(Row::chain(slot, pending));
            if share.complete {
                share.first_logits = want.len();
                want.push(rows.len() - 1);
                for node in &share.proposal.draft().nodes {
                    let parent = node
                        .parent
                        .map_or(share.take - 1, |parent| share.take + parent);
                    want.push(rows.len());
                    rows.push(Row {
                        slot,
                        token: node.token,
                        parent: Some(parent),
                    });
                }
            }
        }
    }
}

/// Whether every row by which a verdict chose says something; `row` gives the target's logits as for [`logprobs`].
fn is_decided<'a>(
    draft: &Draft,
    verdict: &Verdict,
    row: impl Fn(Option<usize>) -> LogitsRow<'a>,
) -> bool {
    let mut path = chosen(draft, verdict);
    path.all(|(token, node)| row(node).decides(token))
}

/// What a verdict chose, and after which node.
fn chosen(draft: &Draft, verdict: &Verdict) -> impl Iterator<Item = (TokenId, Option<usize>)> {
    let path = verdict.accepted.iter();
    let tokens = path.clone().map(|node| draft.nodes[*node].token);
    let after = std::iter::once(None).chain(path.map(|node| Some(*node)));
    tokens.chain([verdict.next]).zip(after)
}

/// Log-probabilities of what a verdict chose; `row` gives the target's logits after a node, or after the committed tokens.
fn logprobs<'a>(
    draft: &Draft,
    verdict: &Verdict,
    top: usize,
    row: impl Fn(Option<usize>) -> LogitsRow<'a>,
) -> Vec<TokenLogprobs> {
    chosen(draft, verdict)
        .map(|(token, node)| {
            TokenLogprobs::of(row(node).values(), token, top.min(MAX_TOP_LOGPROBS))
        })
        .collect()
}

pub(super) fn slot(sequence: &Sequence) -> Slot {
    sequence.slot.expect("a running sequence holds a cache")
}
