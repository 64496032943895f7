//! Softmax within a chunk, and the fold of chunks into one.

use super::super::simd::{LANES, Simd, exp};
use super::CHUNK;

/// What is known of a query's weights so far: their largest score, and their sum relative to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Softmax {
    pub(super) max: f32,
    pub(super) sum: f32,
}

/// Turns the scores `from..to` into weights relative to the largest; those around them within whole vectors into zero.
#[inline(always)]
pub(super) fn weigh<S: Simd>(
    simd: S,
    scores: &mut [f32; CHUNK],
    from: usize,
    to: usize,
) -> Softmax {
    let (start, end) = (from / LANES * LANES, to.next_multiple_of(LANES));
    scores[start..from].fill(f32::NEG_INFINITY);
    scores[to..end].fill(f32::NEG_INFINITY);
    let vectors = scores[start..end].as_chunks_mut::<LANES>().0;
    let mut max = simd.splat(f32::NEG_INFINITY);
    for scores in vectors.iter() {
        max = simd.max(simd.load(scores), max);
    }
    let mut lanes = [0.0; LANES];
    simd.store(max, &mut lanes);
    let max = lanes.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let shift = simd.splat(max);
    for scores in vectors.iter_mut() {
        simd.store(exp(simd, simd.sub(simd.load(scores), shift)), scores);
    }
    scores[start..from].fill(0.0);
    scores[to..end].fill(0.0);
    // A position always falls into the same lane, so that what lies around the scores adds zeros only.
    let mut sum = simd.splat(0.0);
    for weights in scores[start..end].as_chunks::<LANES>().0 {
        sum = simd.add(sum, simd.load(weights));
    }
    Softmax {
        max,
        sum: simd.sum(sum),
    }
}

/// Folds the next chunk into what the chunks before it came to; `None`: it is the first.
#[inline(always)]
pub(super) fn fold<S: Simd>(
    simd: S,
    before: Option<Softmax>,
    out: &mut [f32],
    chunk: Softmax,
    sums: &[f32],
) -> Softmax {
    let sums = &sums[..out.len()];
    let Some(before) = before else {
        out.copy_from_slice(sums);
        return chunk;
    };
    let max = before.max.max(chunk.max);
    let mut factors = [0.0; LANES];
    (factors[0], factors[1]) = (before.max - max, chunk.max - max);
    let exponentials = exp(simd, simd.load(&factors));
    simd.store(exponentials, &mut factors);
    let [keep, add, ..] = factors;
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = *out * keep + sum * add;
    }
    Softmax {
        max,
        sum: before.sum * keep + chunk.sum * add,
    }
}

/// Ends the fold: divides by the sum of the weights.
#[inline(always)]
pub(super) fn finish(out: &mut [f32], softmax: Softmax) {
    out.iter_mut().for_each(|out| *out /= softmax.sum);
}
