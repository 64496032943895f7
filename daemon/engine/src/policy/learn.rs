//! What the controller learns from a step.

use super::acceptance::{DEPTHS, PAIR_MEMORY, REQUEST_MEMORY};
use super::probe::Use;
use super::seat::Seat;
use super::{
    Controller, CostModel, DraftKind, DraftState, Evidence, NodeOutcome, Outcome, Protection,
    SpeculationStats, StepPlan, StepTimes,
};

/// Observations of a match length that a request remembers: texts change from copying to writing at once.
const MATCH_MEMORY: f64 = 10.0;

impl Controller {
    /// Takes the time of a decoding step that was run for no request, to know what such steps cost.
    pub fn rehearsed(&mut self, rows: usize, positions: usize, seconds: f64) {
        self.costs.record_step(rows, positions, seconds);
    }

    /// Takes the measured times of a planned step. Comes before the outcomes of its requests.
    pub fn record_step(&mut self, plan: &mut StepPlan, times: &StepTimes<'_>) {
        let went_ahead = plan.goes_ahead();
        // A step in which the draft went on says what that costs, and one that prepared those to come what that costs:
        // neither says what steps cost.
        if !plan.prompt && !went_ahead {
            let record = match times.cold {
                true => CostModel::record_cold_step,
                false => CostModel::record_step,
            };
            record(&mut self.costs, times.rows, plan.positions, times.step());
        }
        for draft in times.drafts {
            let (rounds, rows) = plan.rounds.total(draft.kind);
            // What was foreseen took time too, and no round; and a device may be catching up yet when the first one begins.
            let foreseen = plan.seats.iter().any(|seat| seat.foreseen > 0);
            if rounds > 0 && !foreseen && draft.catch_up.tokens == 0 {
                let seconds = draft.round_seconds / rounds as f64;
                let record = match draft.cold {
                    true => CostModel::record_cold_round,
                    false => CostModel::record_round,
                };
                let rows = rows.div_ceil(rounds);
                record(&mut self.costs, draft.kind, rows, plan.positions, seconds);
            }
            if !draft.cold {
                self.costs.record_catch_up(draft.kind, draft.catch_up);
            }
        }
        plan.plain = self.costs.step(plan.running, plan.positions);
        // What was prepared on the way would be taken for a loss by going on, or for one without.
        let cold = times.cold || times.drafts.iter().any(|draft| draft.cold);
        if plan.drafts_with_model() && plan.is_governed() && !cold {
            let saved = plan.saved(times) / plan.running.max(1) as f64;
            let alone = self.costs.step(times.rows, plan.positions);
            let lost = if went_ahead {
                times.step() - alone
            } else {
                0.0
            };
            self.pipelining
                .record(saved / plan.plain, lost / plan.plain);
        }
        let (draft, step) = (times.draft(), times.step());
        plan.without_drafts = match (plan.drafted, plan.prompt) {
            // The step is the plain one.
            (0, _) => step,
            (_, false) => plan.plain,
            (drafted, true) => (step - plan.costs.step(drafted) + plan.costs.step(0)).max(0.0),
        };
        plan.seconds = SpeculationStats {
            draft_seconds: draft,
            verify_seconds: times.verify,
            accept_seconds: times.accept,
            cache_update_seconds: times.cache_update,
            ..SpeculationStats::default()
        };
    }

    /// Takes what the step did for the request `sequence` of the plan, and books it.
    pub fn record(
        &mut self,
        plan: &StepPlan,
        sequence: usize,
        state: &mut DraftState,
        outcome: &Outcome<'_>,
    ) {
        let Some(seat) = plan.seats.get(sequence) else {
            return;
        };
        for node in outcome.nodes {
            self.learn(state, node);
        }
        for drafted in 0..seat.nodes {
            state.window.observe(drafted < outcome.accepted);
        }
        for kind in DraftKind::ALL {
            let (view, track) = (&seat.views[kind.index()], &mut state.tracks[kind.index()]);
            for round in 0..view.judged {
                track.acceptance.observe_round(round < view.judged_well);
            }
            let used = view.used(kind);
            if used == Use::Declined {
                track.acceptance.age();
            }
            if !plan.prompt {
                track.probe.record(used, view.outlook);
            }
        }
        let stats = self.book(plan, seat, state, outcome);
        state.stats.merge(&stats);
        self.stats.merge(&stats);
    }

    fn learn(&mut self, state: &mut DraftState, node: &NodeOutcome) {
        let history = &mut self.histories[node.kind.index()];
        let track = &mut state.tracks[node.kind.index()];
        let (depth, accepted) = (node.depth, node.accepted);
        if node.sibling == 0 {
            track.acceptance.observe(depth, accepted, REQUEST_MEMORY);
            history.acceptance.observe(depth, accepted, PAIR_MEMORY);
        }
        match node.evidence {
            Evidence::None => {}
            Evidence::Confidence(confidence) => {
                if let Some(predicted) = history.calibration.at(node.sibling, confidence) {
                    track.bias.observe(predicted, accepted, REQUEST_MEMORY);
                }
                history
                    .calibration
                    .observe(node.sibling, confidence, accepted);
            }
            Evidence::Match(length) => {
                track.matches.observe(length, accepted, MATCH_MEMORY);
                history.matches.observe(length, accepted, PAIR_MEMORY);
            }
        }
    }

    /// Books a step for one request and returns its part of the statistics.
    fn book(
        &self,
        plan: &StepPlan,
        seat: &Seat,
        state: &mut DraftState,
        outcome: &Outcome<'_>,
    ) -> SpeculationStats {
        let seconds = plan.seconds.elapsed_seconds();
        let committed = outcome.committed.max(1);
        let share = 1.0 / plan.running.max(1) as f64;
        // The first token is what the step without drafts would have given; each further one saves a plain step.
        let saved = (committed - 1) as f64 * plan.plain;
        let added = seconds - plan.without_drafts;
        let loss = match self.protection {
            Protection::EachRequest => added - saved,
            Protection::Batch => added * plan.part(seat) - saved * share,
        };
        state.ledger.book(seconds, loss, plan.plain);
        state.pace.observe(
            committed,
            seconds / (plan.without_drafts.max(f64::MIN_POSITIVE)),
        );
        let (drafted, accepted) = (seat.nodes as u64, outcome.accepted as u64);
        let is_drafted = u64::from(drafted > 0);
        let mut accepted_per_position = [0; DEPTHS];
        (0..outcome.accepted).for_each(|depth| accepted_per_position[depth.min(DEPTHS - 1)] += 1);
        let expected = if drafted > 0 { share } else { 0.0 };
        SpeculationStats {
            steps: 1,
            drafted_steps: is_drafted,
            probe_steps: u64::from(seat.probes()),
            forced_bypasses: u64::from(seat.forced && drafted == 0),
            declined_steps: u64::from(drafted == 0 && seat.declined()),
            bypassed_steps: 1 - is_drafted,
            pipelined_steps: u64::from(plan.goes_ahead() && drafted > 0),
            foreseen_rounds: seat.foreseen as u64,
            committed_tokens: outcome.committed as u64,
            drafted_step_tokens: is_drafted * outcome.committed as u64,
            drafted_tokens: drafted,
            accepted_tokens: accepted,
            accepted_per_position,
            draft_seconds: plan.seconds.draft_seconds * share,
            verify_seconds: plan.seconds.verify_seconds * share,
            accept_seconds: plan.seconds.accept_seconds * share,
            cache_update_seconds: plan.seconds.cache_update_seconds * share,
            plain_seconds: (plan.without_drafts + saved) * share,
            expected_tokens: if drafted > 0 { seat.tokens } else { 0.0 },
            expected_seconds: expected * (plan.without_drafts + plan.extra),
            expected_plain_seconds: expected
                * (plan.without_drafts + (seat.tokens - 1.0) * plan.plain),
            ledger_seconds: loss,
        }
    }
}
