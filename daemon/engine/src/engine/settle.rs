//! What becomes of a step: tokens are committed, what was rejected is rolled back.

use tandem_model::model::ModelError;

use super::Engine;
use super::step::{Share, slot};
use crate::Output;
use crate::sequence::Sequence;

impl Engine {
    /// Commits and rolls back one sequence. Returns how many tokens were committed, and why the sequence ended where it
    /// did.
    pub(super) fn settle(
        &mut self,
        share: &mut Share,
        outputs: &mut Vec<Output>,
    ) -> Result<(usize, Option<crate::FinishReason>), ModelError> {
        let Some(verdict) = &share.verdict else {
            return Ok((0, None));
        };
        let sequence = &mut self.running[share.index];
        let (nodes, path) = (&share.proposal.draft().nodes, &verdict.accepted);
        if !nodes.is_empty() {
            // What was accepted follows the committed tokens directly; siblings in between go.
            let from = sequence.tokens.len();
            let slot = slot(sequence);
            let contiguous = path.iter().enumerate().all(|(i, node)| i == *node);
            if contiguous {
                self.target.truncate(slot, from + path.len())
            } else {
                self.target.keep(slot, from, path)?
            }
        }
        let chosen = path.iter().map(|node| nodes[*node].token);
        let commit = sequence.commit(chosen.chain([verdict.next]), self.tokenizer.end_tokens());
        let committed = commit.token_ids.len();
        record(sequence, nodes.len(), path.len(), committed);
        // What a stop cut off was never said.
        let mut logprobs = std::mem::take(&mut share.logprobs);
        logprobs.truncate(committed);
        outputs.push(Output::Tokens {
            id: sequence.id,
            token_ids: commit.token_ids,
            text: commit.text,
            logprobs,
        });
        Ok((committed, commit.finish))
    }
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
