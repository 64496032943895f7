//! A tree that a model drafts: it grows level by level, wherever the plan finds that a forward and a row pay.

use std::sync::Arc;

use tandem_model::TokenId;
use tandem_model::backend::{BackendError, Logits};
use tandem_model::logits::{LEADING, Leading, LogitsRow};
use tandem_model::model::{Row, Slot};

use super::DraftRequest;
use super::distributions::Distributions;
use super::model::Foreseen;
use super::proposal::Origin;
use crate::policy::{DraftKind, Evidence, StepPlan};
use crate::sampling::Distribution;

/// A place whose continuation the next forward tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Index of its request.
    pub(super) request: usize,
    /// Its node; `None`: the committed tokens.
    pub(super) node: Option<usize>,
    /// Drafted tokens down to it, itself counted.
    depth: usize,
    /// Probability that it stands.
    survival: f64,
    /// Its place among its siblings.
    sibling: usize,
    /// Index of its parent's row in the model's open tree.
    parent_row: Option<usize>,
    /// Index of its own row there, once it is fed.
    row: Option<usize>,
}

impl Open {
    /// What follows the committed tokens; `row` is that of the last of them, where it is part of the open tree.
    pub(super) fn root(request: usize, row: Option<usize>) -> Self {
        Self {
            request,
            node: None,
            depth: 0,
            survival: 1.0,
            sibling: 0,
            parent_row: None,
            row,
        }
    }

    /// Whether it lies within the first `positions` positions of its text, so that it may be fed.
    pub(super) fn is_within(&self, positions: usize, requests: &[DraftRequest<'_>]) -> bool {
        requests[self.request].tokens.len() + self.depth <= positions
    }

    /// Offers what may follow a place, as `logits` have it, and adds the places below.
    fn expand(
        self,
        kind: DraftKind,
        plan: &mut StepPlan,
        request: &mut DraftRequest<'_>,
        logits: LogitsRow<'_>,
        distributions: &mut Distributions,
        next: &mut Vec<Self>,
    ) {
        // All of this is known before anything is drawn: see `policy` for why it must be.
        let leading = logits.leading();
        let mut survivals = [0.0; LEADING];
        let mut count = 0;
        while count < LEADING {
            let confidence = Some(leading.probs[count]);
            let offered = plan.offer(
                request.seat,
                kind,
                self.depth,
                count,
                self.survival,
                confidence,
            );
            let Some(survival) = offered else { break };
            survivals[count] = survival;
            count += 1;
        }
        if count == 0 {
            return;
        }
        let mut path = Vec::with_capacity(self.depth);
        request.proposal.path(self.node, &mut path);
        let mut drawn_from = distributions.unused();
        if let Some(distribution) = Arc::get_mut(&mut drawn_from) {
            let sampler = &request.sampler;
            sampler.distribution_into(logits, &path, distribution);
        }
        let position = request.tokens.len() + self.depth;
        let tokens = children(request, &drawn_from, position, count, &leading);
        for (sibling, (token, survival)) in tokens.into_iter().zip(survivals).enumerate() {
            let origin = Origin {
                kind,
                depth: self.depth,
                sibling,
                evidence: Evidence::Confidence(leading.probs[sibling]),
            };
            let probs = Some(Arc::clone(&drawn_from));
            let node = request.proposal.push(token, self.node, probs, origin);
            next.push(Self {
                request: self.request,
                node: Some(node),
                depth: self.depth + 1,
                survival,
                sibling,
                parent_row: self.row,
                row: None,
            });
        }
        distributions.keep(drawn_from);
    }
}

/// Offers what may follow each of `places`, whose logits come in the same order, and adds the places below to `next`.
pub(super) fn expand_all(
    kind: DraftKind,
    plan: &mut StepPlan,
    requests: &mut [DraftRequest<'_>],
    places: &[Open],
    logits: &Logits,
    distributions: &mut Distributions,
    next: &mut Vec<Open>,
) -> Result<(), BackendError> {
    for (row, place) in places.iter().enumerate() {
        let request = &mut requests[place.request];
        let logits = distributions.seen(logits.at(row));
        place.expand(kind, plan, request, logits, distributions, next);
    }
    logits.arrived()
}

/// Offers what may follow `place`, as far down as that was computed ahead: `branch` begins with what follows the place, and
/// each further one is the row of a child of the one before. Adds the places below to `next`.
pub(super) fn expand_foreseen(
    kind: DraftKind,
    plan: &mut StepPlan,
    requests: &mut [DraftRequest<'_>],
    mut place: Open,
    branch: &[Foreseen],
    distributions: &mut Distributions,
    next: &mut Vec<Open>,
) {
    let request = &mut requests[place.request];
    for (index, here) in branch.iter().enumerate() {
        let first = next.len();
        place.expand(kind, plan, request, here.logits.row(), distributions, next);
        let nodes = &request.proposal.draft().nodes;
        let is_fed = |child: &Open| {
            let token = child.node.map(|node| nodes[node].token);
            branch
                .get(index + 1)
                .is_some_and(|row| token == Some(row.token))
        };
        let Some(child) = next[first..].iter().position(is_fed) else {
            return;
        };
        let child = next.remove(first + child);
        if !plan.known_round(request.seat, kind, child.depth) {
            return;
        }
        place = Open {
            row: Some(branch[index + 1].row),
            ..child
        };
    }
}

/// At most `count` different tokens for a position.
///
/// Where the distribution leaves no choice, further ones are guesses: the likeliest others before the transforms.
fn children(
    request: &mut DraftRequest<'_>,
    distribution: &Distribution,
    position: usize,
    count: usize,
    leading: &Leading,
) -> Vec<TokenId> {
    let Some(certain) = distribution.certain() else {
        return match count {
            1 => vec![request.sampler.draw(distribution, position)],
            _ => request.sampler.draw_distinct(distribution, position, count),
        };
    };
    let others = leading
        .tokens
        .iter()
        .copied()
        .filter(|&token| token != certain);
    std::iter::once(certain).chain(others).take(count).collect()
}

/// Chooses which places are fed in the next round, the likeliest first, and gives their rows, of one request after the
/// other. A place is fed only if its earlier siblings are, so that rows keep the order of siblings.
///
/// `fed[request]` counts the rows of its open tree.
pub(super) fn next_round(
    kind: DraftKind,
    plan: &mut StepPlan,
    requests: &[DraftRequest<'_>],
    places: &mut Vec<Open>,
    fed: &mut [usize],
    slots: impl Fn(usize) -> Slot,
    rows: &mut Vec<Row>,
) {
    places.sort_by(|a, b| b.survival.total_cmp(&a.survival));
    let mut left_out: Vec<(usize, Option<usize>, usize)> = Vec::new();
    places.retain(|place| {
        let after_one = left_out.iter().any(|&(request, row, sibling)| {
            (request, row) == (place.request, place.parent_row) && sibling < place.sibling
        });
        let seat = requests[place.request].seat;
        let goes_on = !after_one && plan.round(seat, kind, place.depth, place.survival);
        if !goes_on {
            left_out.push((place.request, place.parent_row, place.sibling));
        }
        goes_on
    });
    places.sort_by_key(|place| (place.request, place.parent_row, place.sibling));
    rows.clear();
    for place in places.iter_mut() {
        place.row = Some(fed[place.request]);
        fed[place.request] += 1;
        let node = place.node.expect("only drafted places are fed");
        rows.push(Row {
            slot: slots(place.request),
            token: requests[place.request].proposal.draft().nodes[node].token,
            parent: place.parent_row,
        });
    }
}
