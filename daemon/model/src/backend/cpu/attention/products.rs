//! The two products of attention, for one to four queries that share keys and values. How many share them changes
//! nothing in the order of any query's sums.

use super::super::cache::LayerView;
use super::super::simd::{LANES, Simd};
use super::{CHUNK, HEAD_DIM_LIMIT};

/// Queries that share what is loaded.
pub(super) const QUAD: usize = 4;
/// Scores of a quad by position within the chunk; later its weights.
pub(super) type Scores = [[f32; CHUNK]; QUAD];
/// Weighted sums of values of a quad.
pub(super) type Sums = [[f32; HEAD_DIM_LIMIT]; QUAD];

/// Where the threads read keys and values: one head of a layer.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    pub(super) layer: &'a LayerView<'a>,
    pub(super) head: usize,
}

/// Scores of the slots of whole tiles, from `first_slot` on, into `scores[query][at..]`.
#[inline(always)]
pub(super) fn score<S: Simd>(
    simd: S,
    head: Head<'_>,
    queries: &[&[f32]],
    first_slot: usize,
    tiles: usize,
    scores: &mut Scores,
    at: usize,
) {
    match *queries {
        [a] => score_tiles::<S, 1, 4>(simd, head, [a], first_slot, tiles, scores, at),
        [a, b] if S::ROOMY => {
            score_tiles::<S, 2, 4>(simd, head, [a, b], first_slot, tiles, scores, at);
        }
        [a, b] => score_tiles::<S, 2, 2>(simd, head, [a, b], first_slot, tiles, scores, at),
        [a, b, c] if S::ROOMY => {
            score_tiles::<S, 3, 4>(simd, head, [a, b, c], first_slot, tiles, scores, at);
        }
        [a, b, c] => score_tiles::<S, 3, 1>(simd, head, [a, b, c], first_slot, tiles, scores, at),
        [a, b, c, d, ..] if S::ROOMY => {
            score_tiles::<S, 4, 4>(simd, head, [a, b, c, d], first_slot, tiles, scores, at);
        }
        [a, b, c, d, ..] => {
            score_tiles::<S, 4, 1>(simd, head, [a, b, c, d], first_slot, tiles, scores, at);
        }
        [] => {}
    }
}

/// `T` tiles at a time, then one by one.
#[inline(always)]
fn score_tiles<S: Simd, const Q: usize, const T: usize>(
    simd: S,
    head: Head<'_>,
    queries: [&[f32]; Q],
    first_slot: usize,
    tiles: usize,
    scores: &mut Scores,
    at: usize,
) {
    let mut tile = 0;
    while tile + T <= tiles {
        let (slot, at) = (first_slot + tile * LANES, at + tile * LANES);
        score_block::<S, Q, T>(simd, head, queries, slot, scores, at);
        tile += T;
    }
    while tile < tiles {
        let (slot, at) = (first_slot + tile * LANES, at + tile * LANES);
        score_block::<S, Q, 1>(simd, head, queries, slot, scores, at);
        tile += 1;
    }
}

#[inline(always)]
#[expect(unsafe_code, reason = "reads the cache")]
fn score_block<S: Simd, const Q: usize, const T: usize>(
    simd: S,
    head: Head<'_>,
    queries: [&[f32]; Q],
    slot: usize,
    scores: &mut Scores,
    at: usize,
) {
    // SAFETY: nobody writes to the cache while queries attend.
    let tiles: [&[[u16; LANES]]; T] =
        std::array::from_fn(|t| unsafe { head.layer.keys(head.head, slot + t * LANES) });
    let width = tiles[0].len();
    let tiles = tiles.map(|tile| &tile[..width]);
    let queries = queries.map(|query| &query[..width]);
    let mut sums = [[simd.splat(0.0); T]; Q];
    for element in 0..width {
        let mut keys = [simd.splat(0.0); T];
        for (key, tile) in keys.iter_mut().zip(&tiles) {
            *key = simd.load_f16(&tile[element]);
        }
        for (query, sums) in queries.iter().zip(&mut sums) {
            let x = simd.splat(query[element]);
            for (key, sum) in keys.iter().zip(sums) {
                *sum = simd.fma(x, *key, *sum);
            }
        }
    }
    for (sums, scores) in sums.iter().zip(scores) {
        let places = scores[at..at + T * LANES].as_chunks_mut::<LANES>().0;
        for (sum, place) in sums.iter().zip(places) {
            simd.store(*sum, place);
        }
    }
}

/// Adds to the sums of the quad's queries `queries` the values of `slots`, weighted by `weights[query][at..]`.
#[inline(always)]
pub(super) fn accumulate<S: Simd>(
    simd: S,
    head: Head<'_>,
    queries: std::ops::Range<usize>,
    slots: std::ops::Range<usize>,
    (weights, at): (&Scores, usize),
    sums: &mut Sums,
) {
    if slots.is_empty() {
        return;
    }
    let (weights, sums) = (&weights[queries.clone()], &mut sums[queries]);
    match sums {
        [a] => accumulate_blocks::<S, 1, 4>(simd, head, slots, weights, at, [a]),
        [a, b] if S::ROOMY => {
            accumulate_blocks::<S, 2, 4>(simd, head, slots, weights, at, [a, b]);
        }
        [a, b] => accumulate_blocks::<S, 2, 2>(simd, head, slots, weights, at, [a, b]),
        [a, b, c] if S::ROOMY => {
            accumulate_blocks::<S, 3, 4>(simd, head, slots, weights, at, [a, b, c]);
        }
        [a, b, c] => accumulate_blocks::<S, 3, 1>(simd, head, slots, weights, at, [a, b, c]),
        [a, b, c, d] if S::ROOMY => {
            accumulate_blocks::<S, 4, 4>(simd, head, slots, weights, at, [a, b, c, d]);
        }
        [a, b, c, d] => accumulate_blocks::<S, 4, 1>(simd, head, slots, weights, at, [a, b, c, d]),
        _ => {}
    }
}

#[inline(always)]
#[expect(unsafe_code, reason = "reads the cache")]
fn accumulate_blocks<S: Simd, const Q: usize, const B: usize>(
    simd: S,
    head: Head<'_>,
    slots: std::ops::Range<usize>,
    weights: &[[f32; CHUNK]],
    at: usize,
    mut sums: [&mut [f32; HEAD_DIM_LIMIT]; Q],
) {
    let count = slots.len();
    // SAFETY: nobody writes to the cache while queries attend.
    let values = unsafe { head.layer.values(head.head, slots) };
    let blocks = values.len() / count;
    let weights: [&[f32]; Q] = std::array::from_fn(|q| &weights[q][at..at + count]);
    let mut block = 0;
    while block + B <= blocks {
        accumulate_block::<S, Q, B>(simd, values, blocks, block, weights, &mut sums);
        block += B;
    }
    while block < blocks {
        accumulate_block::<S, Q, 1>(simd, values, blocks, block, weights, &mut sums);
        block += 1;
    }
}

/// `B` vectors of the sums, from the `first`-th of `blocks` on.
#[inline(always)]
fn accumulate_block<S: Simd, const Q: usize, const B: usize>(
    simd: S,
    values: &[[u16; LANES]],
    blocks: usize,
    first: usize,
    weights: [&[f32]; Q],
    sums: &mut [&mut [f32; HEAD_DIM_LIMIT]; Q],
) {
    let mut now = [[simd.splat(0.0); B]; Q];
    for (now, sums) in now.iter_mut().zip(sums.iter()) {
        let places = &sums.as_chunks::<LANES>().0[first..first + B];
        for (now, place) in now.iter_mut().zip(places) {
            *now = simd.load(place);
        }
    }
    for (slot, values) in values.chunks_exact(blocks).enumerate() {
        let mut widened = [simd.splat(0.0); B];
        for (value, halves) in widened.iter_mut().zip(&values[first..first + B]) {
            *value = simd.load_f16(halves);
        }
        for (weights, now) in weights.iter().zip(&mut now) {
            let weight = simd.splat(weights[slot]);
            for (value, now) in widened.iter().zip(now) {
                *now = simd.fma(weight, *value, *now);
            }
        }
    }
    for (now, sums) in now.iter().zip(sums) {
        let places = &mut sums.as_chunks_mut::<LANES>().0[first..first + B];
        for (now, place) in now.iter().zip(places) {
            simd.store(*now, place);
        }
    }
}
