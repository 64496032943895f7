//! What is known of a pair, and the plan of a step that follows from it.

use super::acceptance::Acceptance;
use super::calibration::{Calibration, Matches};
use super::pipelining::{Pipelined, Pipelining};
use super::price::{self, MOST_SEATS};
use super::seat::{Mode, Seat, View};
use super::{CostModel, DraftKind, DraftState, Policy, Protection, SpeculationStats, StepPlan};

/// Steps over which a request's allowance is spread where others draft beside it.
const SPREAD: f64 = 128.0;

/// A pair's history with one drafter.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) acceptance: Acceptance,
    pub(super) calibration: Calibration,
    pub(super) matches: Matches,
}

/// Decides how much is drafted, for all requests of a pair.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    pub(super) policy: Policy,
    pub(super) protection: Protection,
    pub(super) costs: CostModel,
    pub(super) histories: [History; DraftKind::COUNT],
    pub(super) pipelining: Pipelining,
    pub(super) stats: SpeculationStats,
}

/// The step that is planned, without drafts.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// Its rows.
    pub rows: usize,
    /// Requests that choose a token in it.
    pub running: usize,
    /// Most rows that it may have with drafts.
    pub max_rows: usize,
    /// Cached positions of all its sequences together.
    pub positions: usize,
    /// Whether it carries prompt chunks.
    pub prompt: bool,
}

/// A request that chooses tokens in the step; those that may not draft are candidates too, for they wait for those that do.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// What is known of it.
    pub state: &'a DraftState,
    /// Which kinds of drafter may serve it, by [`DraftKind::ALL`].
    pub kinds: [bool; DraftKind::COUNT],
    /// Tokens that it may still generate.
    pub remaining: usize,
    /// Tokens beyond the newest that each drafter has yet to take in.
    pub behind: [usize; DraftKind::COUNT],
    /// A policy of its own.
    pub policy: Option<Policy>,
    /// Most continuations that a drafter may propose at one place; `None`: no limit but what pays.
    pub width: Option<usize>,
}

impl Controller {
    /// Makes a controller that knows nothing yet.
    #[must_use]
    pub fn new(policy: Policy, protection: Protection) -> Self {
        Self {
            policy,
            protection,
            ..Self::default()
        }
    }

    /// Says when drafts are continued while they are verified; forgets what was measured of that.
    #[must_use]
    pub fn pipelined(self, pipelined: Pipelined) -> Self {
        Self {
            pipelining: Pipelining::new(pipelined),
            ..self
        }
    }

    /// Takes another policy; what was learned stays.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// What steps and rounds cost.
    #[must_use]
    pub fn costs(&self) -> &CostModel {
        &self.costs
    }

    /// What speculation did for the pair so far.
    #[must_use]
    pub fn stats(&self) -> &SpeculationStats {
        &self.stats
    }

    /// Plans a step. The first steps of a pair, and a few later ones, are plain, to know what plain decoding costs.
    pub fn plan<'a>(
        &self,
        plan: &mut StepPlan,
        batch: Batch,
        candidates: impl Iterator<Item = Candidate<'a>>,
    ) {
        plan.begin(&self.costs, batch);
        for (calibration, history) in plan.calibration.iter_mut().zip(&self.histories) {
            calibration.clone_from(&history.calibration);
        }
        let mut pace = 0.0;
        for candidate in candidates {
            let seat = self.seat(plan, &candidate);
            pace += candidate.state.pace.speedup() / batch.running as f64;
            if seat.bounded && self.protection == Protection::EachRequest {
                plan.room = plan.room.min(seat.room);
            }
            plan.seats.push(seat);
        }
        plan.ahead = self.pipelining.due(plan.is_governed());
        let measure = !batch.prompt && self.costs.needs_plain_step(batch.rows, batch.positions);
        let common_room = plan.room;
        for seat in &mut plan.seats {
            seat.forced = seat.bounded && seat.room.min(common_room) <= 0.0;
            if self.protection == Protection::EachRequest {
                seat.room = f64::INFINITY;
            }
            if measure || seat.forced {
                seat.close();
            }
        }
        let forecast = price::forecast(&plan.costs, &plan.seats, &mut plan.chains);
        // What requests achieve counts looked-up tokens too, which no forecast knows of.
        let achieved = pace * batch.running as f64 / plan.plain;
        plan.price = forecast.rate.max(achieved);
        plan.foreseen_rows = forecast.rows;
        // Where some draft and each is protected, all do: who waits for the drafts of others should have its own.
        let all = plan.running > 1 && self.protection == Protection::EachRequest;
        plan.bearable = all.then_some(common_room / SPREAD);
        for (index, seat) in plan.seats.iter_mut().enumerate() {
            if seat.length.is_none() {
                let drafts = index < MOST_SEATS && forecast.drafting >> index & 1 == 1;
                seat.settle(drafts || (all && forecast.drafting != 0));
            }
        }
    }

    /// What is known of a request, with every drafter open that it may use.
    fn seat(&self, plan: &StepPlan, candidate: &Candidate<'_>) -> Seat {
        let state = candidate.state;
        let policy = candidate.policy.unwrap_or(self.policy);
        let bounded = policy == Policy::Goodput;
        let mut seat = Seat {
            max_depth: candidate.remaining.saturating_sub(1),
            bounded,
            width: candidate.width,
            room: if bounded {
                state.ledger.room(plan.plain)
            } else {
                f64::INFINITY
            },
            length: match policy {
                Policy::Goodput => None,
                Policy::Threshold => Some(state.window.draft_length()),
                Policy::Fixed(length) => Some(length),
            },
            tokens: 1.0,
            ..Seat::default()
        };
        // All wait for the probes of each, and for what it catches up.
        let waiting = match self.protection {
            Protection::EachRequest => plan.running.max(1) as f64,
            Protection::Batch => 1.0,
        };
        for kind in DraftKind::ALL {
            let index = kind.index();
            if !candidate.kinds[index] {
                continue;
            }
            let (track, history) = (&state.tracks[index], &self.histories[index]);
            let behind = candidate.behind[index];
            let catch_up_seconds = self.costs.catch_up(kind, behind, plan.positions);
            let rates =
                std::array::from_fn(|depth| track.acceptance.at(depth, &history.acceptance));
            // A probe of one token. However likely it is to win, several in a row may lose all they cost.
            let cost = plan.costs.round(kind, 1) + plan.row_seconds(1);
            let loss = (cost - rates[0] * plan.plain).max(cost / 2.0) + catch_up_seconds;
            seat.views[index] = View {
                mode: Mode::Open,
                probe_due: !plan.prompt && track.probe.due(waiting * loss / plan.plain),
                parked: track.probe.parked(),
                rates,
                bias: track.bias,
                matches: track.matches.rates(&history.matches),
                offered: track.acceptance.offered(),
                catch_up_seconds,
                ..View::default()
            };
            let outlook = price::outlook(&plan.costs, &seat, kind, plan.running);
            let view = &mut seat.views[index];
            view.outlook = outlook;
            // What catching up costs must come in again before the request ends.
            let saved = candidate.remaining as f64 * plan.plain * (1.0 - 1.0 / outlook.max(1.0));
            if bounded && waiting * catch_up_seconds > saved.max(0.1 * plan.plain) {
                view.mode = Mode::Closed;
            }
        }
        if policy == Policy::Threshold {
            seat.threshold(state.window.acceptance());
        }
        seat.single(price::lead(&seat));
        seat
    }
}
