//! The drafts of a step.

use super::Engine;
use super::step::{Share, Step};
use crate::draft::DraftRequest;
use crate::policy::{Batch, Candidate, DraftKind, Policy};
use crate::sequence::Sequence;

impl Engine {
    /// Drafts for the sequences that decode, as much as pays. A failing drafter is shed: its loss costs speed only.
    pub(super) fn draft(&mut self, step: &mut Step) {
        let Some(drafter) = &mut self.drafter else {
            return;
        };
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
            Candidate {
                state: &sequence.draft_state,
                kinds: [sequence.request.speculation, false, false],
                remaining: sequence.remaining(),
                behind: [0; DraftKind::COUNT],
                policy: sequence.request.draft_length.map(Policy::Fixed),
            }
        });
        self.controller.plan(plan, batch, candidates);
        // Lengths are fixed before anything is drawn, so they cannot depend on what is.
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        for (i, share) in shares.iter().enumerate() {
            let Some(seat) = share.seat else { continue };
            let (mut length, mut survival) = (0, 1.0);
            while plan.round(seat, DraftKind::Model, length, survival) {
                match plan.offer(seat, DraftKind::Model, length, 0, survival, None) {
                    Some(next) => survival = next,
                    None => break,
                }
                length += 1;
            }
            if length > 0 {
                wanted.push((i, length));
            }
        }
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
}
