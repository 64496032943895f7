//! One step.

use std::time::Instant;

use super::{Engine, StepError};
use crate::backend::Logits;
use crate::draft::DraftRequest;
use crate::model::{ModelError, Row, Slot};
use crate::policy::{self, Candidate};
use crate::sequence::Sequence;
use crate::verify::{Draft, verify};
use crate::{Output, TokenId};

/// One sequence's part of a step.
struct Share {
    /// Index among the running sequences.
    index: usize,
    /// Pending tokens that are fed.
    take: usize,
    /// Whether that is all of them, so that a token is chosen.
    complete: bool,
    draft: Draft,
    /// Index of its first row's logits among the wanted ones.
    first_logits: usize,
}

impl Engine {
    /// Advances every running request by one forward of the target and says what happened. `clock` is read a few
    /// times to learn what steps cost.
    ///
    /// # Errors
    /// Where the target fails. The requests that were running are lost; the engine must not be used further.
    pub fn step(&mut self, clock: &dyn Fn() -> Instant) -> Result<Vec<Output>, StepError> {
        let mut outputs = Vec::new();
        let started = clock();
        self.expire(started, &mut outputs);
        let failed = |rows: usize| move |source: ModelError| StepError { rows, source };
        self.admit(&mut outputs).map_err(failed(0))?;
        if self.running.is_empty() {
            return Ok(outputs);
        }

        let mut shares = self.schedule();
        self.draft(&mut shares);
        let drafted: usize = shares.iter().map(|share| share.draft.nodes.len()).sum();
        let draft_ended = clock();

        let (rows, want) = self.rows(&mut shares);
        let logits = self
            .target
            .forward(&rows, &want)
            .map_err(failed(rows.len()))?;
        self.steps += 1;
        let mut finished = Vec::new();
        let mut committed = Vec::with_capacity(shares.len());
        for share in &shares {
            committed.push(
                self.settle(share, &logits, &mut outputs, &mut finished)
                    .map_err(failed(rows.len()))?,
            );
        }
        let ended = clock();

        // Steps that carry prompt chunks say nothing about decoding.
        if shares.iter().all(|share| share.complete && share.take == 1) {
            self.costs
                .record_step(rows.len(), (ended - draft_ended).as_secs_f64());
            self.costs
                .record_draft(drafted, (draft_ended - started).as_secs_f64());
            let plain = self.costs.step(shares.len());
            for (share, tokens) in shares.iter().zip(&committed) {
                let state = &mut self.running[share.index].draft_state;
                state
                    .ledger
                    .book((ended - started).as_secs_f64(), *tokens, plain);
            }
        }
        finished.sort_unstable_by_key(|(index, _)| std::cmp::Reverse(*index));
        for (index, reason) in finished {
            let sequence = self.remove(index);
            self.finish(sequence, reason, &mut outputs);
        }
        Ok(outputs)
    }

    /// Shares the rows of the step: decoding sequences first, then prompts, oldest first.
    fn schedule(&self) -> Vec<Share> {
        let pending = |sequence: &Sequence| sequence.tokens.len() - self.cached(sequence);
        let mut order: Vec<usize> = (0..self.running.len()).collect();
        order.sort_by_key(|index| pending(&self.running[*index]) > 1);
        let mut room = self.options.max_step_rows.max(self.running.len());
        let mut shares = Vec::new();
        for index in order {
            let pending = pending(&self.running[index]);
            let take = pending.min(room);
            if take == 0 {
                break;
            }
            room -= take;
            shares.push(Share {
                index,
                take,
                complete: take == pending,
                draft: Draft::default(),
                first_logits: 0,
            });
        }
        shares
    }

    fn cached(&self, sequence: &Sequence) -> usize {
        sequence.slot.map_or(0, |slot| self.target.cached(slot))
    }

    /// Drafts for the sequences that decode, as much as pays. A failing drafter is shed: its loss costs speed only.
    fn draft(&mut self, shares: &mut [Share]) {
        let Some(drafter) = &mut self.drafter else {
            return;
        };
        let rows: usize = shares.iter().map(|share| share.take).sum();
        let decoding: Vec<usize> = (0..shares.len())
            .filter(|&i| {
                let sequence = &self.running[shares[i].index];
                shares[i].complete && shares[i].take == 1 && sequence.request.speculation
            })
            .collect();
        // One token is always chosen by the target itself, so a draft of all that remains is one too long.
        let longest = |sequence: &Sequence| sequence.remaining() - 1;
        let candidates: Vec<Candidate<'_>> = decoding
            .iter()
            .map(|&i| {
                let sequence = &self.running[shares[i].index];
                Candidate {
                    state: &sequence.draft_state,
                    max_len: longest(sequence),
                }
            })
            .collect();
        let mut room = self.options.max_step_rows.saturating_sub(rows);
        let mut lengths = policy::draft_lengths(&self.costs, rows, &candidates);
        for (length, &i) in lengths.iter_mut().zip(&decoding) {
            let sequence = &self.running[shares[i].index];
            if let Some(fixed) = sequence.request.draft_length {
                *length = fixed.min(longest(sequence));
            }
            *length = (*length).min(room);
            room -= *length;
        }

        let wanted: Vec<(usize, usize)> = decoding
            .into_iter()
            .zip(lengths)
            .filter(|(_, length)| *length > 0)
            .collect();
        if wanted.is_empty() {
            return;
        }
        let mut sequences: Vec<Option<&mut Sequence>> = self.running.iter_mut().map(Some).collect();
        let mut requests: Vec<DraftRequest<'_>> = wanted
            .iter()
            .filter_map(|&(i, max_len)| {
                let sequence = sequences[shares[i].index].take()?;
                let Sequence {
                    id,
                    tokens,
                    sampler,
                    ..
                } = sequence;
                Some(DraftRequest {
                    id: *id,
                    tokens,
                    sampler,
                    max_len,
                })
            })
            .collect();
        match drafter.draft(&mut requests) {
            Ok(drafts) => {
                for ((i, _), draft) in wanted.into_iter().zip(drafts) {
                    shares[i].draft = draft;
                }
            }
            Err(error) => self.shed_draft(format!("the draft failed: {error}")),
        }
    }

    /// The rows of the step and which of them need logits: the last pending token of each sequence that chooses, and
    /// its drafted tokens.
    fn rows(&self, shares: &mut [Share]) -> (Vec<Row>, Vec<usize>) {
        let (mut rows, mut want) = (Vec::new(), Vec::new());
        for share in shares {
            let sequence = &self.running[share.index];
            let slot = slot(sequence);
            let cached = self.target.cached(slot);
            let pending = &sequence.tokens[cached..cached + share.take];
            rows.extend(Row::chain(slot, pending));
            if share.complete {
                share.first_logits = want.len();
                want.push(rows.len() - 1);
                for node in &share.draft.nodes {
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
        (rows, want)
    }

    /// Verifies, commits and rolls back one sequence. Returns how many tokens were committed.
    fn settle(
        &mut self,
        share: &Share,
        logits: &Logits,
        outputs: &mut Vec<Output>,
        finished: &mut Vec<(usize, crate::FinishReason)>,
    ) -> Result<usize, ModelError> {
        if !share.complete {
            return Ok(0);
        }
        let sequence = &mut self.running[share.index];
        let row =
            |node: Option<usize>| logits.row(share.first_logits + node.map_or(0, |node| node + 1));
        let position = sequence.tokens.len();
        let verdict = verify(&share.draft, &mut sequence.sampler, position, row);

        let drafted = share.draft.nodes.len();
        let path = &verdict.accepted;
        let chosen: Vec<TokenId> = path
            .iter()
            .map(|node| share.draft.nodes[*node].token)
            .chain([verdict.next])
            .collect();
        if drafted > 0 {
            // What was accepted follows the committed tokens directly; siblings in between go.
            let from = position;
            let slot = slot(sequence);
            let contiguous = path.iter().enumerate().all(|(i, node)| i == *node);
            if contiguous {
                self.target.truncate(slot, from + path.len())
            } else {
                self.target.keep(slot, from, path)?
            }
        }
        let commit = sequence.commit(chosen, self.tokenizer.end_tokens());
        let committed = commit.token_ids.len();
        sequence.draft_state.record(drafted, path.len());
        record(sequence, drafted, path.len(), committed);
        outputs.push(Output::Tokens {
            id: sequence.id,
            token_ids: commit.token_ids,
            text: commit.text,
        });
        if let Some(reason) = commit.finish {
            finished.push((share.index, reason));
        }
        Ok(committed)
    }
}

fn slot(sequence: &Sequence) -> Slot {
    sequence.slot.expect("a running sequence holds a cache")
}

/// Books a step in the request's statistics. Tokens behind a stop were accepted and count as drafted, not as output.
fn record(sequence: &mut Sequence, drafted: usize, accepted: usize, committed: usize) {
    let stats = &mut sequence.stats;
    stats.steps += 1;
    if drafted == 0 {
        return;
    }
    stats.drafted_steps += 1;
    stats.draft_tokens += drafted as u64;
    stats.accepted_tokens += accepted as u64;
    stats.drafted_step_tokens += committed as u64;
    if stats.accepted_per_position.len() < accepted {
        stats.accepted_per_position.resize(accepted, 0);
    }
    stats.accepted_per_position[..accepted]
        .iter_mut()
        .for_each(|count| *count += 1);
}
