//! What more rows and rounds cost a plan, and whether tokens are worth that.

use super::curve::GROUP;
use super::seat::Seat;
use super::{DraftKind, MOST_CHOSEN, StepPlan, StepTimes};

impl StepPlan {
    /// Whether for some n the next n tokens of a chain, whose first has survival `first`, are worth their rows and rounds.
    /// The first token's round costs `round` on top.
    pub(super) fn pays(
        &self,
        seat: &Seat,
        kind: DraftKind,
        depth: usize,
        first: f64,
        round: f64,
    ) -> bool {
        let view = &seat.views[kind.index()];
        let (mut survival, mut gain, mut seconds) = (first, 0.0, round);
        let most = seat.left(depth).min(self.rows_left(seat));
        (1..=most.min(MOST_CHOSEN)).any(|tokens| {
            gain += seat.gain(kind, depth + tokens - 1, survival);
            let pays = gain > self.price * (seconds + self.shared_seconds(tokens));
            survival *= view.rate(depth + tokens) * view.offered;
            seconds += self.costs.round(kind, 1);
            pays
        })
    }

    /// Seconds that so many more rows add to the step.
    pub(super) fn row_seconds(&self, rows: usize) -> f64 {
        self.costs.step(self.drafted + rows) - self.costs.step(self.drafted)
    }

    /// Seconds that so many more rows of a request are worth. Where several requests draft, the first row of a group would
    /// have to pay for all that are foreseen to share it, so each pays its part.
    fn shared_seconds(&self, rows: usize) -> f64 {
        let to = self.drafted + rows;
        if self.running <= 1 || to > self.foreseen_rows {
            return self.row_seconds(rows);
        }
        let (mut at, mut seconds) = (self.drafted, 0.0);
        while at < to {
            // The drafted rows before the group, and those with all of it that is foreseen.
            let group = (self.running + at) / GROUP * GROUP;
            let before = group.saturating_sub(self.running);
            let with = (group + GROUP - self.running).min(self.foreseen_rows);
            let each = (self.costs.step(with) - self.costs.step(before)) / (with - before) as f64;
            let next = with.min(to);
            seconds += (next - at) as f64 * each;
            at = next;
        }
        seconds
    }

    /// Rows of the last group that are left beside so many drafted ones.
    pub(super) fn left_of_group(&self, drafted: usize) -> usize {
        let rows = self.running + drafted;
        rows.next_multiple_of(GROUP) - rows
    }

    /// Seconds that rows beside a request's branch are worth, or those of guesses beside other requests. Within a group a row
    /// may cost nothing, but then others are the sooner in the next one: it pays its share of that.
    pub(super) fn side_seconds(&self, rows: usize) -> f64 {
        let share = rows as f64 / GROUP as f64 * self.row_seconds(GROUP);
        self.shared_seconds(rows).max(share)
    }

    /// Seconds by which forwards that were found done made drafting shorter; what the host does with their results is not
    /// saved.
    pub(super) fn saved(&self, times: &StepTimes<'_>) -> f64 {
        let kind = DraftKind::Model;
        let foreseen: usize = self.seats.iter().map(|seat| seat.foreseen).sum();
        let mut drafts = times.drafts.iter();
        let Some(draft) = drafts.find(|draft| draft.kind == kind && foreseen > 0) else {
            return 0.0;
        };
        let (rounds, rows) = self.rounds.total(kind);
        let each = self.costs.round(kind, rows.div_ceil(rounds.max(1)));
        let all = foreseen as f64 * self.costs.round(kind, 1) + rounds as f64 * each;
        all - draft.round_seconds
    }
}
