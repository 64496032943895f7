//! One chunk of positions for up to four queries.

use super::super::simd::{LANES, Simd};
use super::CHUNK;
use super::products::{Head, QUAD, Scores, Sums, accumulate, score};
use super::softmax::{Softmax, weigh};

/// Slots of positions: the sequence's past and a chain lie at their positions, the ancestors of a tree's row anywhere.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    /// Positions below it lie at their own slots; all do for a chain.
    pub(super) straight: usize,
    /// Slots of the positions from `straight` on, less `straight`.
    pub(super) ancestors: &'a [usize],
}

impl Slots<'_> {
    fn of(&self, position: usize) -> usize {
        if position < self.straight {
            position
        } else {
            self.straight + self.ancestors[position - self.straight]
        }
    }
}

/// Queries and what each sees of the chunk, as positions within it; no range is empty.
pub(super) struct Quad<'a> {
    pub(super) count: usize,
    pub(super) queries: [&'a [f32]; QUAD],
    pub(super) seen: [(usize, usize); QUAD],
}

/// Space for a chunk, on the stack of whoever takes it.
pub(super) struct Space {
    scores: Scores,
    pub(super) sums: Sums,
}

impl Space {
    pub(super) fn new() -> Self {
        Self {
            scores: [[0.0; CHUNK]; QUAD],
            sums: [[0.0; super::HEAD_DIM_LIMIT]; QUAD],
        }
    }
}

/// Attends to the chunk that begins at position `first`; the weighted sums are left in `space.sums`.
#[inline(always)]
pub(super) fn attend<S: Simd>(
    simd: S,
    head: Head<'_>,
    quad: &Quad<'_>,
    slots: Slots<'_>,
    first: usize,
    space: &mut Space,
) -> [Softmax; QUAD] {
    let seen = &quad.seen[..quad.count];
    let from = seen.iter().map(|seen| seen.0).min().unwrap_or(0);
    let to = seen.iter().map(|seen| seen.1).max().unwrap_or(0);
    // Past `straight` within the chunk; a tree's quad is of one row, whose queries see the same.
    let straight = slots.straight.saturating_sub(first).clamp(from, to);
    let queries = &quad.queries[..quad.count];
    if from < straight {
        let start = from / LANES * LANES;
        let tiles = (straight - start).div_ceil(LANES);
        score(
            simd,
            head,
            queries,
            first + start,
            tiles,
            &mut space.scores,
            start,
        );
    }
    score_ancestors(
        simd,
        head,
        queries,
        slots,
        (first, straight, to),
        &mut space.scores,
    );

    let mut softmax = [Softmax { max: 0.0, sum: 0.0 }; QUAD];
    for (q, (from, to)) in seen.iter().enumerate() {
        softmax[q] = weigh(simd, &mut space.scores[q], *from, *to);
        space.sums[q][..head.layer.value_width()].fill(0.0);
    }

    // What all see goes together, what some see before and after it one by one, and ancestors slot by slot.
    let common_from = seen.iter().map(|seen| seen.0).max().unwrap_or(0);
    let common_to = seen
        .iter()
        .map(|seen| seen.1.min(straight))
        .min()
        .unwrap_or(0);
    let common_to = common_to.max(common_from);
    for step in 0..2 * quad.count + 1 + (to - straight) {
        let (queries, range) = if step < quad.count {
            (
                step..step + 1,
                seen[step].0..common_from.min(seen[step].1).min(straight),
            )
        } else if step == quad.count {
            (0..quad.count, common_from..common_to)
        } else if step <= 2 * quad.count {
            let q = step - quad.count - 1;
            (q..q + 1, common_to..seen[q].1.min(straight))
        } else {
            let position = straight + step - 2 * quad.count - 1;
            (0..quad.count, position..position + 1)
        };
        if !range.is_empty() {
            let slot = slots.of(first + range.start);
            let (weights, at) = (&space.scores, range.start);
            let slots = slot..slot + range.len();
            accumulate(simd, head, queries, slots, (weights, at), &mut space.sums);
        }
    }
    softmax
}

/// Scores of the positions `from..to` of the chunk, whose slots are anywhere.
#[inline(always)]
fn score_ancestors<S: Simd>(
    simd: S,
    head: Head<'_>,
    queries: &[&[f32]],
    slots: Slots<'_>,
    (first, from, to): (usize, usize, usize),
    scores: &mut Scores,
) {
    if from == to {
        return;
    }
    // Lanes do not touch each other, so a slot's score is what it would be at its position.
    let mut tile: Scores = [[0.0; CHUNK]; QUAD];
    let mut loaded = usize::MAX;
    for position in from..to {
        let slot = slots.of(first + position);
        if slot / LANES != loaded {
            loaded = slot / LANES;
            score(simd, head, queries, loaded * LANES, 1, &mut tile, 0);
        }
        for (scores, tile) in scores.iter_mut().zip(&tile).take(queries.len()) {
            scores[position] = tile[slot % LANES];
        }
    }
}
