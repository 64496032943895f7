//! The drafts of a step.

use std::time::Instant;

use tandem_model::model::ModelError;

use super::Engine;
use super::step::{Share, Step, slot};
use crate::draft::{DraftRequest, Drafting};
use crate::policy::{Batch, Candidate, DraftKind, DraftTime, Policy};
use crate::sequence::Sequence;

impl Engine {
    /// Drafts for the sequences that decode, as much as pays, with one drafter after the other. A drafter that fails is
    /// dropped: its loss costs speed only.
    pub(super) fn draft(&mut self, step: &mut Step, clock: &dyn Fn() -> Instant) {
        if self.drafters.is_empty() {
            return;
        }
        self.plan(step);
        let asks = |share: &Share| self.running[share.index].request.speculation;
        if !step
            .shares
            .iter()
            .any(|share| share.seat.is_some() && asks(share))
        {
            return;
        }
        let Step {
            shares,
            plan,
            draft_times,
            ..
        } = step;
        let mut sequences: Vec<Option<&mut Sequence>> = self.running.iter_mut().map(Some).collect();
        let mut requests: Vec<DraftRequest<'_>> = Vec::new();
        for share in shares.iter_mut() {
            let (Some(seat), Some(sequence)) = (share.seat, sequences[share.index].take()) else {
                continue;
            };
            for drafter in &mut self.drafters {
                let reach = drafter.reach();
                let beyond = !reach.covers(sequence.tokens.len(), sequence.largest);
                if beyond || plan.parked(seat, drafter.kind()) {
                    drafter.park(sequence.id);
                }
            }
            requests.push(DraftRequest {
                id: sequence.id,
                seat,
                slot: slot(sequence),
                client: sequence.request.client,
                tokens: &sequence.tokens,
                sampler: &mut sequence.sampler,
                proposal: &mut share.proposal,
            });
        }
        let mut failed = None;
        let mut started = clock();
        for (index, drafter) in self.drafters.iter_mut().enumerate() {
            let prepared = drafter.preparations() + self.target.preparations();
            let drafting = Drafting {
                target: &mut *self.target,
                plan,
                clock,
            };
            match drafter.draft(drafting, &mut requests) {
                Ok(catch_up) => {
                    let ended = clock();
                    draft_times.push(DraftTime {
                        kind: drafter.kind(),
                        round_seconds: ((ended - started).as_secs_f64() - catch_up.seconds)
                            .max(0.0),
                        catch_up,
                        cold: drafter.preparations() + self.target.preparations() > prepared,
                    });
                    started = ended;
                }
                Err(error) => {
                    failed = Some((index, error));
                    break;
                }
            }
        }
        drop(requests);
        if let Some((index, error)) = failed {
            self.lose_drafter(index, &error);
            // What the others proposed is as good as ever, but some of the plan is not what was drafted.
            for share in shares {
                share.proposal = crate::draft::Proposal::default();
                share.seat = None;
            }
        }
    }

    /// Goes on without a drafter that failed.
    pub(super) fn lose_drafter(&mut self, index: usize, error: &ModelError) {
        let drafter = self.drafters.remove(index);
        self.off_reason = Some(format!("the {} draft failed: {error}", drafter.name()));
    }

    /// Gives the sequences that decode a seat each, and plans what they may draft.
    fn plan(&self, step: &mut Step) {
        let Step { shares, plan, .. } = step;
        let decoding = |share: &&mut Share| share.complete && share.take == 1;
        for (seat, share) in shares.iter_mut().filter(decoding).enumerate() {
            share.seat = Some(seat);
        }
        let running = &self.running;
        let seated = || shares.iter().filter(|share| share.seat.is_some());
        let batch = Batch {
            rows: shares.iter().map(|share| share.take).sum(),
            running: seated().count(),
            max_rows: self.options.max_step_rows,
            positions: seated()
                .map(|share| running[share.index].tokens.len())
                .sum(),
            prompt: shares.iter().any(|share| share.seat.is_none()),
        };
        let candidates = seated().map(|share| {
            let sequence = &running[share.index];
            let (mut kinds, mut behind) = ([false; DraftKind::COUNT], [0; DraftKind::COUNT]);
            for drafter in &self.drafters {
                let kind = drafter.kind();
                let reaches = drafter
                    .reach()
                    .covers(sequence.tokens.len(), sequence.largest);
                kinds[kind.index()] = reaches && sequence.request.may_use(kind);
                behind[kind.index()] = drafter.behind(sequence.id, sequence.tokens.len());
            }
            Candidate {
                state: &sequence.draft_state,
                kinds,
                remaining: sequence.remaining(),
                behind,
                policy: sequence.request.draft_length.map(Policy::Fixed),
                width: sequence.request.draft_width,
            }
        });
        self.controller.plan(plan, batch, candidates);
    }
}
