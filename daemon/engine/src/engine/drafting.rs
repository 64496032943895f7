//! The drafts of a step.

use super::Engine;
use super::step::{Share, slot};
use crate::draft::DraftRequest;
use crate::policy::{self, Candidate};
use crate::sequence::Sequence;

impl Engine {
    /// Drafts for the sequences that decode, as much as pays. A failing drafter is shed: its loss costs speed only.
    pub(super) fn draft(&mut self, shares: &mut [Share]) {
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
                let slot = slot(sequence);
                let Sequence {
                    id,
                    tokens,
                    sampler,
                    ..
                } = sequence;
                Some(DraftRequest {
                    id: *id,
                    slot,
                    tokens,
                    sampler,
                    max_len,
                })
            })
            .collect();
        match drafter.draft(&mut *self.target, &mut requests) {
            Ok(drafts) => {
                for ((i, _), draft) in wanted.into_iter().zip(drafts) {
                    shares[i].draft = draft;
                }
            }
            Err(error) => self.shed_draft(format!("the draft failed: {error}")),
        }
    }
}
