//! One step's admission of drafted tokens.

use super::calibration::Calibration;
use super::plan_costs::{Costs, Rounds};
use super::price::Chain;
use super::seat::{Mode, Seat, View};
use super::{Batch, CostModel, DraftKind, SpeculationStats};

/// Decides, token by token, what is drafted and verified in one step. Made by [`super::Controller::plan`], kept and filled
/// again for the next step.
///
/// Requests are named by their place among the candidates. Drafters come in the order of their cost: lookup first, since
/// its guesses are free and change what the rest is worth. Within a drafter all requests are asked for one depth before any
/// is for the next, so that rows go to those who need them most.
#[derive(Clone, Debug, Default)]
pub struct StepPlan {
    pub(super) costs: Costs,
    pub(super) calibration: [Calibration; DraftKind::COUNT],
    pub(super) seats: Vec<Seat>,
    pub(super) chains: Vec<Chain>,
    pub(super) rounds: Rounds,
    /// Whether the draft goes on while the target verifies.
    pub(super) ahead: bool,
    /// Tokens per second that time is worth.
    pub(super) price: f64,
    /// Drafted rows of the plan that this rate belongs to.
    pub(super) foreseen_rows: usize,
    /// Seconds that drafts may still add to the step for everyone's sake.
    pub(super) room: f64,
    /// Seconds that a request may lose in this step, catching up aside, by what others draft; `None`: as many as all may.
    pub(super) bearable: Option<f64>,
    /// Seconds of catching up so far.
    pub(super) caught_up: f64,
    /// Seconds that drafts are expected to add so far.
    pub(super) extra: f64,
    /// Drafted rows so far.
    pub(super) drafted: usize,
    pub(super) running: usize,
    pub(super) positions: usize,
    pub(super) prompt: bool,
    /// Seconds of the plain step of the same requests.
    pub(super) plain: f64,
    /// Seconds that the step would have taken without drafts; known afterwards.
    pub(super) without_drafts: f64,
    /// Seconds that it took; known afterwards.
    pub(super) seconds: SpeculationStats,
}

impl StepPlan {
    /// Starts over for another step.
    pub(super) fn begin(&mut self, model: &CostModel, batch: Batch) {
        self.plain = model.step(batch.running, batch.positions);
        self.costs.read(model, batch, self.plain);
        self.seats.clear();
        self.rounds = Rounds::default();
        (self.extra, self.drafted, self.room) = (0.0, 0, f64::INFINITY);
        (self.bearable, self.caught_up) = (None, 0.0);
        (self.running, self.positions, self.prompt) =
            (batch.running, batch.positions, batch.prompt);
    }

    /// Whether a forward of drafter `kind`, to learn what may follow a node of this `survival` at `depth` − 1 (the
    /// committed tokens: survival 1, depth 0), pays; books it if so. Must be asked once for each request that the drafter
    /// could serve, at depth 0 too.
    ///
    /// Looks ahead: it pays if for some n ≥ 1 the n tokens to be expected from here on are worth the time of their rounds
    /// and rows.
    #[must_use]
    pub fn round(&mut self, sequence: usize, kind: DraftKind, depth: usize, survival: f64) -> bool {
        let Some((seat, view)) = self.asked(sequence, kind, depth) else {
            return false;
        };
        let pays = match view.mode {
            Mode::Absent | Mode::Closed => false,
            Mode::Probe => depth == 0 && view.rounds == 0,
            // The forecast over all requests has already said so.
            Mode::Open if seat.length.is_some() || (depth == 0 && seat.covered[0] == 0.0) => true,
            Mode::Open => {
                let first = survival * view.rate(depth) * view.offered;
                // Of the rows that shared the last round as many may share this one.
                let shared = match depth {
                    0 => 1,
                    _ => self.rounds.rows(kind, depth - 1),
                };
                let shared = shared.max(self.rounds.rows(kind, depth) + 1);
                let round = self.costs.round(kind, shared) / shared as f64;
                self.pays(&seat, kind, depth, first, round)
            }
        };
        let catch_up = if depth == 0 {
            view.catch_up_seconds
        } else {
            0.0
        };
        let mut rounds = self.rounds;
        let seconds = catch_up + rounds.add(&self.costs, kind, depth);
        // A round without a row to verify is in vain: both must fit.
        let both = seconds + self.row_seconds(1);
        let borne = view.mode == Mode::Probe || self.is_bearable(&seat, depth, both - catch_up);
        if !pays || !borne || !self.fits(&seat, both) {
            return false;
        }
        self.rounds = rounds;
        self.caught_up += catch_up;
        self.seats[sequence].views[kind.index()].rounds += 1;
        self.book(sequence, seconds);
        true
    }

    /// Whether to go on where the distribution after a node at `depth` − 1 is known already, computed ahead; as
    /// [`Self::round`], at no cost.
    #[must_use]
    pub fn known_round(&mut self, sequence: usize, kind: DraftKind, depth: usize) -> bool {
        let Some((seat, view)) = self.asked(sequence, kind, depth) else {
            return false;
        };
        let open = match view.mode {
            Mode::Absent | Mode::Closed => false,
            Mode::Probe => depth == 0 && view.rounds == 0,
            Mode::Open => true,
        };
        if !open || !self.fits(&seat, self.row_seconds(1)) {
            return false;
        }
        self.seats[sequence].foreseen += 1;
        self.seats[sequence].views[kind.index()].rounds += 1;
        true
    }

    /// Whether to offer a token at `depth`, below a parent of `parent_survival`, for verification; admits it if so and returns
    /// its survival. `confidence` belongs to the distribution that it is drawn from, never to the token: its largest
    /// probability, for the j-th `sibling` (from 0) the j-th largest; `None` where that is not known. Siblings are
    /// offered in order, and none after one that was refused.
    #[must_use]
    pub fn offer(
        &mut self,
        sequence: usize,
        kind: DraftKind,
        depth: usize,
        sibling: usize,
        parent_survival: f64,
        confidence: Option<f64>,
    ) -> Option<f64> {
        let seat = *self.seats.get(sequence)?;
        let view = &seat.views[kind.index()];
        let calibration = &self.calibration[kind.index()];
        let known = confidence.and_then(|confidence| calibration.at(sibling, confidence));
        let rate = view.estimate(known, depth, sibling, confidence);
        let survival = parent_survival * rate;
        let too_wide = seat.width.is_some_and(|width| sibling >= width);
        if too_wide || seat.left(depth) == 0 || self.rows_left(&seat) == 0 {
            return None;
        }
        let pays = match seat.length {
            Some(_) => sibling == 0,
            None if sibling > 0 => {
                seat.gain(kind, depth, survival) > self.price * self.side_seconds(1)
            }
            None => self.pays(&seat, kind, depth, survival, 0.0),
        };
        // Without a known confidence the answer was foreseen, so it says nothing about how often rounds are in vain.
        if known.is_some() && sibling == 0 {
            let view = &mut self.seats[sequence].views[kind.index()];
            view.judged += 1;
            view.judged_well += usize::from(pays);
        }
        let admitted = match view.mode {
            Mode::Absent | Mode::Closed => false,
            Mode::Probe => depth == 0 && sibling == 0,
            Mode::Open => pays,
        };
        let row = self.row_seconds(1);
        let borne = view.mode == Mode::Probe || self.is_bearable(&seat, depth, row);
        if !admitted || !borne || !self.fits(&seat, row) {
            return None;
        }
        self.admit(sequence, kind, 1, seat.gain(kind, depth, survival));
        Some(survival)
    }

    /// Whether a request's cache in the drafter `kind` should be dropped: it has not paid for long. A probe or a better
    /// outlook brings it back, and what that costs is booked.
    #[must_use]
    pub fn parked(&self, sequence: usize, kind: DraftKind) -> bool {
        let view = self
            .seats
            .get(sequence)
            .map(|seat| &seat.views[kind.index()]);
        view.is_some_and(|view| view.parked && matches!(view.mode, Mode::Closed | Mode::Absent))
    }

    /// Most tokens that may be guessed for a request.
    #[must_use]
    pub fn longest(&self, sequence: usize) -> usize {
        self.seats.get(sequence).map_or(0, Seat::longest)
    }

    /// Whether the request's draft only tries whether drafting pays again.
    #[must_use]
    pub fn probes(&self, sequence: usize) -> bool {
        self.seats.get(sequence).is_some_and(Seat::probes)
    }

    /// Whether the draft should be continued while the target verifies it.
    #[must_use]
    pub fn goes_ahead(&self) -> bool {
        self.ahead && self.drafts_with_model()
    }

    /// Whether every request leaves it to the policy how much is drafted. Others are experiments, whose steps have to cost
    /// what their rows cost.
    pub(super) fn is_governed(&self) -> bool {
        self.seats.iter().all(|seat| seat.bounded)
    }

    /// Whether a draft model drafted in this step, and nothing else was computed.
    pub(super) fn drafts_with_model(&self) -> bool {
        let drafted = |seat: &Seat| seat.views[DraftKind::Model.index()].nodes > 0;
        !self.prompt && self.seats.iter().any(drafted)
    }

    /// Drafted rows admitted so far.
    #[must_use]
    pub fn drafted(&self) -> usize {
        self.drafted
    }

    /// Expected tokens of the step over all requests, with what was admitted so far.
    #[must_use]
    pub fn expected_tokens(&self) -> f64 {
        self.seats.iter().map(|seat| seat.tokens).sum()
    }

    /// The part of the time added by drafts that is a request's own.
    pub(super) fn part(&self, seat: &Seat) -> f64 {
        let total: f64 = self.seats.iter().map(Seat::weight).sum();
        if total > 0.0 {
            seat.weight() / total
        } else {
            1.0 / self.seats.len().max(1) as f64
        }
    }

    /// Notes that a drafter asks what may follow a node at `depth` − 1. `None`: nothing more may be drafted there.
    fn asked(&mut self, sequence: usize, kind: DraftKind, depth: usize) -> Option<(Seat, View)> {
        let seat = self.seats.get_mut(sequence)?;
        seat.views[kind.index()].asked = true;
        let seat = *seat;
        let room = seat.left(depth) > 0 && self.rows_left(&seat) > 0 && seat.reaches(depth);
        room.then_some((seat, seat.views[kind.index()]))
    }

    /// Drafted rows that may be added for a request.
    pub(super) fn rows_left(&self, seat: &Seat) -> usize {
        let most = match seat.length {
            None => self.costs.known_rows(),
            Some(_) => self.costs.most_rows(),
        };
        most.saturating_sub(self.drafted)
    }

    /// Whether losing so many seconds more stays within every bound.
    pub(super) fn fits(&self, seat: &Seat, seconds: f64) -> bool {
        !seat.bounded || (self.extra + seconds <= self.room && seat.extra + seconds <= seat.room)
    }

    /// Whether so many seconds more, for drafts down to `depth`, are worth it to each request, the one that gains least too:
    /// all wait for the step.
    pub(super) fn is_bearable(&self, seat: &Seat, depth: usize, seconds: f64) -> bool {
        let bounded = self.seats.iter().filter(|seat| seat.bounded);
        let gains = bounded.map(|seat| seat.foreseen_gain(depth));
        self.is_borne(seat, gains.fold(f64::INFINITY, f64::min), seconds)
    }

    /// The same where the request that gains least gains so many tokens.
    pub(super) fn is_borne(&self, seat: &Seat, least: f64, seconds: f64) -> bool {
        let Some(bearable) = self.bearable.filter(|_| seat.bounded) else {
            return true;
        };
        self.extra - self.caught_up + seconds <= least * self.plain + bearable
    }

    fn book(&mut self, sequence: usize, seconds: f64) {
        self.extra += seconds;
        self.seats[sequence].extra += seconds;
    }

    pub(super) fn admit(&mut self, sequence: usize, kind: DraftKind, rows: usize, tokens: f64) {
        let seconds = self.row_seconds(rows);
        self.book(sequence, seconds);
        self.drafted += rows;
        let seat = &mut self.seats[sequence];
        seat.tokens += tokens;
        seat.nodes += rows;
        seat.views[kind.index()].nodes += rows;
    }
}
