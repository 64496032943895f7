//! The target's forward, and the draft that goes on meanwhile.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use tandem_model::backend::Logits;
use tandem_model::model::{LanguageModel, ModelError};

use super::step::Step;
use crate::draft::{Drafter, Expected};
use crate::policy::DraftKind;
use crate::sequence::Sequence;

/// A drafter that failed, by its index, and why.
pub(super) type Lost = (usize, ModelError);

/// Runs the target over the rows of a step. Where the plan says so, the draft model goes on meanwhile, on a thread of its
/// own; if that fails, the logits come all the same.
///
/// The thread lives for this step only: what starting it costs is measured with the rest, and where that matters the draft
/// does not go on.
pub(super) fn forward<'a>(
    target: &'a mut dyn LanguageModel,
    drafters: &mut [Box<dyn Drafter>],
    running: &[Sequence],
    step: &Step,
) -> Result<(&'a Logits, Option<Lost>), ModelError> {
    // The others compute with the target.
    let mut all = drafters.iter_mut().enumerate();
    let model = all.find(|(_, drafter)| drafter.kind() == DraftKind::Model);
    let Some((index, drafter)) = model.filter(|_| step.plan.goes_ahead()) else {
        return Ok((target.forward(&step.rows, &step.want)?, None));
    };
    let expected = expected(running, step);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ahead = scope.spawn(|| drafter.ahead(&expected, &stop));
        let logits = target.forward(&step.rows, &step.want);
        stop.store(true, Ordering::Relaxed);
        let ahead = ahead.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((logits?, ahead.err().map(|error| (index, error))))
    })
}

/// The sequences that have a draft in this step.
fn expected<'a>(running: &'a [Sequence], step: &'a Step) -> Vec<Expected<'a>> {
    let drafted = step.shares.iter();
    let drafted = drafted.filter(|share| !share.proposal.draft().nodes.is_empty());
    drafted
        .map(|share| {
            let sequence = &running[share.index];
            Expected {
                id: sequence.id,
                tokens: &sequence.tokens,
                remaining: sequence.remaining(),
                sampler: &sequence.sampler,
                proposal: &share.proposal,
            }
        })
        .collect()
}
