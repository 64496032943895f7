//! What a second of this step is worth, and who should draft in it, before anything is drafted.
//!
//! The rate that a plan can reach in the long run is the price of time: a row is worth adding where its survival exceeds
//! what it costs at that price. It is found by admitting (request, depth) in the order of survival over all requests, and
//! taking of all the prefixes of that order the one with most expected tokens per second.

use super::plan_costs::{Costs, Rounds};
use super::seat::{Mode, Seat};
use super::{DraftKind, acceptance::DEPTHS};

/// The best plan of chains by history.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Expected tokens per second over all requests.
    pub(super) rate: f64,
    /// Requests that draft.
    pub(super) drafting: u128,
    /// Drafted rows.
    pub(super) rows: usize,
}

/// Requests that a forecast covers; further ones are decided by themselves.
pub(super) const MOST_SEATS: usize = 128;

/// The drafter that promises a request most, among those that cost rounds.
pub(super) fn lead(seat: &Seat) -> Option<DraftKind> {
    let usable = DraftKind::COMPUTING
        .into_iter()
        .filter(|kind| seat.views[kind.index()].mode == Mode::Open);
    usable.max_by(|a, b| {
        let outlook = |kind: &DraftKind| seat.views[kind.index()].outlook;
        outlook(a).total_cmp(&outlook(b))
    })
}

/// Best expected speed of a batch of `running` requests over its plain speed where a request like this one drafts with
/// `kind`, or where all do: one alone seldom pays for a round that they could share.
pub(super) fn outlook(costs: &Costs, seat: &Seat, kind: DraftKind, running: usize) -> f64 {
    let alone = outlook_of(costs, seat, kind, running, 1);
    alone.max(outlook_of(costs, seat, kind, running, running))
}

/// The same where `drafting` of them draft.
fn outlook_of(costs: &Costs, seat: &Seat, kind: DraftKind, running: usize, drafting: usize) -> f64 {
    let view = &seat.views[kind.index()];
    let (plain_tokens, plain_seconds) = (running as f64, costs.step(0));
    let (mut tokens, mut seconds, mut survival, mut best) = (plain_tokens, plain_seconds, 1.0, 0.0);
    let deepest = costs.known_rows() / drafting.max(1);
    for depth in 0..DEPTHS.min(seat.left(0)).min(deepest) {
        survival *= view.rate(depth) * view.offered;
        tokens += drafting as f64 * survival;
        seconds += costs.round(kind, drafting);
        let rows = drafting * (depth + 1);
        let rate = tokens / (seconds + costs.step(rows) - plain_seconds);
        best = f64::max(best, rate);
    }
    best * plain_seconds / plain_tokens.max(1.0)
}

/// A chain that the forecast grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    seat: usize,
    kind: DraftKind,
    depth: usize,
    /// Of its next node.
    survival: f64,
}

/// Admits chains by survival over all requests. `chains` is memory to reuse.
pub(super) fn forecast(costs: &Costs, seats: &[Seat], chains: &mut Vec<Chain>) -> Forecast {
    let running = seats.len() as f64;
    let mut best = Forecast {
        rate: running / costs.step(0),
        drafting: 0,
        rows: 0,
    };
    let mut rounds = Rounds::default();
    chains.clear();
    chains.extend(
        seats
            .iter()
            .take(MOST_SEATS)
            .enumerate()
            .filter_map(|(index, seat)| {
                let kind = lead(seat)?;
                let view = &seat.views[kind.index()];
                Some(Chain {
                    seat: index,
                    kind,
                    depth: 0,
                    survival: view.rate(0) * view.offered,
                })
            }),
    );
    let (mut tokens, mut draft_seconds, mut drafting) = (running, 0.0, 0_u128);
    for rows in 1..=costs.known_rows() {
        let growing = chains
            .iter_mut()
            .filter(|chain| chain.depth < seats[chain.seat].left(0).min(DEPTHS));
        let Some(chain) = growing.max_by(|a, b| a.survival.total_cmp(&b.survival)) else {
            break;
        };
        tokens += chain.survival;
        draft_seconds += rounds.add(costs, chain.kind, chain.depth);
        drafting |= 1 << chain.seat;
        chain.depth += 1;
        let view = &seats[chain.seat].views[chain.kind.index()];
        chain.survival *= view.rate(chain.depth) * view.offered;
        let rate = tokens / (costs.step(rows) + draft_seconds);
        if rate > best.rate {
            best = Forecast {
                rate,
                drafting,
                rows,
            };
        }
    }
    best
}
