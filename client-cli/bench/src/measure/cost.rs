//! What a step costs by its rows, driven by drafts of fixed lengths; and how far such drafts are right.
//!
//! The daemon measures every step by its rows (`PairStatus.step_costs`). Each answer here drafts one length, so that this
//! measurement is of that row count, and is read right after.

use std::time::Instant;

use tandem_client::GenerateRequest;
use tandem_client::v1::StepCost;

use super::Bench;
use super::answer::Answer;
use crate::BenchError;
use crate::method::Method;
use crate::prompts::Prompt;
use crate::report::{Chain, Step};

/// Draft lengths that are measured.
const LENGTHS: std::ops::RangeInclusive<u32> = 0..=16;
/// Length at which acceptance by position is measured.
const POSITIONS: u32 = 8;

impl Bench<'_> {
    pub(super) async fn cost(&mut self, prompts: &[Prompt]) -> Result<(), BenchError> {
        let computing = self.computing();
        let Some((method, _)) = computing.first().copied() else {
            return Ok(());
        };
        let rounds = self.extent().cost_rounds;
        self.begin("measuring steps by rows", rounds * LENGTHS.count());
        let (began, mut round) = (Instant::now(), 0);
        while self.another(round, rounds, began) {
            // Another text each round: acceptance differs, cost must not.
            let prompt = &prompts[round % prompts.len()];
            for turn in LENGTHS {
                let length = (turn + round as u32) % (LENGTHS.end() + 1);
                self.chain(method, prompt, length, Some(round)).await?;
                self.part();
            }
            round += 1;
        }
        self.begin(
            "measuring acceptance by position",
            computing.len() * prompts.len(),
        );
        let (began, mut asked) = (Instant::now(), 0);
        for prompt in prompts {
            if !self.another(asked, usize::MAX, began) {
                break;
            }
            for (method, _) in &computing {
                self.chain(*method, prompt, POSITIONS, None).await?;
                self.part();
            }
            asked += 1;
        }
        Ok(())
    }

    /// Drafts chains of one length, and reads what its steps took where that belongs to a round.
    async fn chain(
        &mut self,
        method: Method,
        prompt: &Prompt,
        length: u32,
        round: Option<usize>,
    ) -> Result<(), BenchError> {
        let request = GenerateRequest::user(&prompt.prompt)
            .max_tokens(self.extent().cost_tokens)
            .ignore_eos(round.is_some())
            .draft_length(length);
        let client = self.fleet.shared(method).await?;
        let (_, before) = self.fleet.status(&client).await?;
        let (answer, _) = self.ask(method, request).await?;
        let (_, after) = self.fleet.status(&client).await?;
        if let Some(round) = round {
            let fresh = fresh(&before.step_costs, &after.step_costs, length + 1);
            self.report.steps.extend(fresh.map(|(cost, samples)| Step {
                round,
                rows: cost.rows,
                seconds: cost.seconds,
                samples,
            }));
        }
        if length > 0 && answer.speculation.drafted_steps > 0 {
            self.report
                .chains
                .push(chain(method, prompt, length, answer));
        }
        Ok(())
    }
}

fn chain(method: Method, prompt: &Prompt, length: u32, answer: Answer) -> Chain {
    Chain {
        method,
        category: prompt.category.clone(),
        length,
        drafted_steps: answer.speculation.drafted_steps,
        drafted: answer.speculation.drafted,
        accepted: answer.accepted,
        seconds: answer.speculation.draft,
    }
}

/// Finds the measurement of so many rows that grew most between two readings, and by how much.
fn fresh(before: &[StepCost], after: &[StepCost], rows: u32) -> Option<(StepCost, u32)> {
    let samples = |cost: &StepCost| {
        let same = |old: &&StepCost| (old.positions, old.rows) == (cost.positions, cost.rows);
        let old = before.iter().find(same).map_or(0, |old| old.samples);
        cost.samples.saturating_sub(old)
    };
    let measured = after.iter().filter(|cost| cost.rows == rows);
    measured
        .map(|cost| (*cost, samples(cost)))
        .filter(|(_, samples)| *samples > 0)
        .max_by_key(|(_, samples)| *samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_measured_meanwhile_counts() {
        let cost = |positions, rows, samples| StepCost {
            positions,
            rows,
            seconds: f64::from(samples),
            samples,
        };
        let before = [cost(256, 1, 10), cost(256, 4, 3)];
        let after = [
            cost(256, 1, 12),
            cost(256, 4, 8),
            cost(512, 4, 2),
            cost(512, 9, 1),
        ];
        assert_eq!(fresh(&before, &after, 4), Some((cost(256, 4, 8), 5)));
        assert_eq!(fresh(&before, &after, 9), Some((cost(512, 9, 1), 1)));
        assert_eq!(fresh(&after, &after, 4), None);
        assert_eq!(fresh(&before, &after, 3), None);
    }
}
