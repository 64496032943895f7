//! How much to draft: a decision about cost. Drafting more tokens pays while it raises expected tokens per second, as
//! measured on this machine; drafting none is a normal answer.

mod acceptance;
mod cost;
mod ledger;

pub use acceptance::Acceptance;
pub use cost::CostModel;
pub use ledger::Ledger;

/// Longest draft that the policy proposes.
pub const MAX_DRAFT_LENGTH: usize = 8;

/// What the policy knows of one sequence.
#[derive(Clone, Debug, Default)]
pub struct DraftState {
    /// How often its drafts are right.
    pub acceptance: Acceptance,
    /// What speculation has cost it so far.
    pub ledger: Ledger,
    probe: Probe,
}

/// When a sequence that drafts nothing tries again: after 4 plain steps, then 8, up to 512.
#[derive(Clone, Debug)]
struct Probe {
    plain_steps: u32,
    interval: u32,
}

impl Default for Probe {
    fn default() -> Self {
        // The first decision is a probe: nothing is known yet.
        Self {
            plain_steps: 4,
            interval: 4,
        }
    }
}

/// One sequence that may draft in the coming step.
#[derive(Debug)]
pub struct Candidate<'a> {
    /// What is known of it.
    pub state: &'a DraftState,
    /// Most tokens it may draft.
    pub max_len: usize,
}

/// Picks a draft length for each candidate. `rows` is how many rows the step has without any drafted token.
///
/// Positions are admitted in the order of their survival, over all candidates; of all the prefixes of that order the
/// one with most expected tokens per second is taken.
#[must_use]
pub fn draft_lengths(costs: &CostModel, rows: usize, candidates: &[Candidate<'_>]) -> Vec<usize> {
    let allowed = |candidate: &Candidate<'_>| match candidate.state.ledger.exhausted(costs.step(1))
    {
        true => 0,
        false => candidate.max_len.min(MAX_DRAFT_LENGTH),
    };
    let mut lengths = vec![0; candidates.len()];
    let (mut tokens, mut drafted) = (candidates.len() as f64, 0);
    let mut best = (tokens / costs.step(rows), lengths.clone());
    let mut survival: Vec<f64> = candidates
        .iter()
        .map(|c| c.state.acceptance.at(0))
        .collect();
    loop {
        let open = (0..candidates.len()).filter(|&i| lengths[i] < allowed(&candidates[i]));
        let Some(next) = open.max_by(|&a, &b| survival[a].total_cmp(&survival[b])) else {
            break;
        };
        tokens += survival[next];
        drafted += 1;
        lengths[next] += 1;
        survival[next] *= candidates[next].state.acceptance.at(lengths[next]);
        let rate = tokens / (costs.step(rows + drafted) + costs.draft(drafted));
        if rate > best.0 {
            best = (rate, lengths.clone());
        }
    }
    let mut lengths = best.1;
    for (length, candidate) in lengths.iter_mut().zip(candidates) {
        if *length == 0 && candidate.state.probe.plain_steps >= candidate.state.probe.interval {
            *length = allowed(candidate).min(1);
        }
    }
    lengths
}

impl DraftState {
    /// Learns from a step: how many tokens were drafted and accepted, and whether drafting looked worthwhile.
    pub fn record(&mut self, drafted: usize, accepted: usize) {
        if drafted == 0 {
            self.probe.plain_steps += 1;
            return;
        }
        self.acceptance.record(drafted, accepted);
        // A single drafted token may have been a probe; a longer draft was chosen because it pays.
        self.probe.interval = if drafted == 1 {
            (self.probe.interval * 2).min(512)
        } else {
            4
        };
        self.probe.plain_steps = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(step: impl Fn(usize) -> f64, draft: f64) -> CostModel {
        let mut costs = CostModel::default();
        for rows in 1..=32 {
            for _ in 0..50 {
                costs.record_step(rows, step(rows));
            }
        }
        for _ in 0..50 {
            costs.record_draft(1, draft);
        }
        costs
    }

    fn state(drafted: usize, accepted: usize) -> DraftState {
        let mut state = DraftState::default();
        for _ in 0..100 {
            state.record(drafted, accepted);
        }
        state
    }

    #[test]
    fn nothing_is_drafted_where_rows_cost_as_much_as_steps() {
        let costs = measured(|rows| rows as f64, 0.1);
        let state = state(2, 1);
        assert_eq!(
            draft_lengths(
                &costs,
                1,
                &[Candidate {
                    state: &state,
                    max_len: 8
                }]
            ),
            [0]
        );
    }

    #[test]
    fn much_is_drafted_where_rows_are_free_and_drafts_are_right() {
        let costs = measured(|_| 1.0, 0.02);
        let good = state(8, 8);
        let bad = state(2, 0);
        let lengths = draft_lengths(
            &costs,
            2,
            &[
                Candidate {
                    state: &good,
                    max_len: 8,
                },
                Candidate {
                    state: &bad,
                    max_len: 8,
                },
            ],
        );
        assert_eq!(lengths, [8, 0]);
    }

    #[test]
    fn plain_decoding_is_probed_ever_less() {
        let costs = measured(|rows| rows as f64, 0.1);
        let mut state = DraftState::default();
        let mut probes = Vec::new();
        for step in 0..1200 {
            let drafted = draft_lengths(
                &costs,
                1,
                &[Candidate {
                    state: &state,
                    max_len: 8,
                }],
            )[0];
            if drafted > 0 {
                probes.push(step);
            }
            state.record(drafted, 0);
        }
        assert!(probes.len() < 11, "{probes:?}");
        assert!(
            probes.windows(3).all(|w| w[2] - w[1] >= w[1] - w[0]),
            "{probes:?}"
        );
    }
}
