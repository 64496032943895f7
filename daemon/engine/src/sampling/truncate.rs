//! Top-k, top-p and min-p without sorting the vocabulary.
//!
//! Candidates are ordered by a 64-bit key: value descending, then id ascending, so ties have one outcome. Selection is
//! by quickselect over few candidates; the vocabulary itself is only scanned.

use tandem_model::TokenId;
use tandem_model::{math, wide};

use super::Distribution;

/// Orders like (value descending, id ascending); both zeros count as equal.
fn key(value: f32, token: TokenId) -> u64 {
    let bits = (value + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 {
        bits | (1 << 31)
    } else {
        !bits
    };
    (u64::from(!ascending) << 32) | u64::from(token)
}

/// Token of a key.
fn token(key: u64) -> TokenId {
    (key & u64::from(u32::MAX)) as TokenId
}

/// Values that are looked at together: most blocks have nothing that is large enough, and a maximum vectorizes.
const BLOCK: usize = 64;

wide! {
    /// Keys of logits among which the `k` largest are.
    fn contenders[](logits: &[f32], k: usize) -> Vec<u64> = contenders_inline
}

#[inline(always)]
fn contenders_inline(logits: &[f32], k: usize) -> Vec<u64> {
    let capacity = k.saturating_mul(2).max(256);
    let mut keys = Vec::with_capacity(capacity.min(logits.len()));
    let mut floor = f32::NEG_INFINITY;
    for (start, block) in (0..).step_by(BLOCK).zip(logits.chunks(BLOCK)) {
        if math::max_inline(block) <= floor {
            continue;
        }
        for (token, &logit) in (start..).zip(block) {
            // Strictly: of equal logits the earlier has the lower id. NaN passes no comparison.
            if logit > floor {
                keys.push(key(logit, token));
                if keys.len() == capacity {
                    let (_, &mut last, _) = keys.select_nth_unstable(k - 1);
                    floor = logits[self::token(last) as usize];
                    keys.truncate(k);
                }
            }
        }
    }
    keys
}

wide! {
    /// Keys of the weights that are at least `floor`, which is above 0.
    fn keys_from[](row: &Distribution, floor: f32) -> Vec<u64> = keys_from_inline
}

#[inline(always)]
fn keys_from_inline(row: &Distribution, floor: f32) -> Vec<u64> {
    let mut keys = Vec::new();
    for (start, block) in (0..).step_by(BLOCK).zip(row.weights.chunks(BLOCK)) {
        if math::max_inline(block) < floor {
            continue;
        }
        for (place, &weight) in (start..).zip(block) {
            if weight >= floor {
                keys.push(key(weight, row.token(place)));
            }
        }
    }
    keys
}

/// Keeps the `k` largest logits of a dense row; `k` at least 1. Leaves nothing where no logit is above negative infinity.
///
/// One scan with a rising floor: about k·ln(V/k) logits pass it in an ordinary row.
pub(super) fn keep_top_k(row: &mut Distribution, k: usize) {
    let mut keys = contenders(&row.weights, k);
    if keys.len() > k {
        keys.select_nth_unstable(k - 1);
        keys.truncate(k);
    }
    keep(row, keys);
}

/// Keeps the smallest set of largest weights with mass `top_p`, and of those the ones of at least `min_p` times the
/// largest, which is 1 after the softmax.
///
/// All weights below (1 - top_p) / V of the mass together cannot fill what top-p cuts off, so one scan drops them; the
/// rest, usually some hundreds, is halved by quickselect until the boundary is found: linear, no sort.
pub(super) fn keep_top_p_min_p(row: &mut Distribution, top_p: f32, min_p: f32) {
    let goal = f64::from(top_p) * row.total;
    // Half of the bound, so that rounding cannot matter.
    let negligible = (row.total - goal) / (2.0 * row.weights.len() as f64);
    let floor = min_p.max(negligible as f32).max(f32::MIN_POSITIVE);
    let mut keys = keys_from(row, floor);
    if top_p < 1.0 {
        let kept = nucleus(&mut keys, goal, |key| row.weight(token(key)));
        keys.truncate(kept);
    }
    keep(row, keys);
    row.total = math::sum(&row.weights);
}

/// Moves the fewest smallest keys whose weights reach `goal` to the front and counts them; all, where all fall short.
fn nucleus(keys: &mut [u64], goal: f64, weight: impl Fn(u64) -> f64) -> usize {
    let (mut low, mut high, mut mass) = (0, keys.len(), 0.0);
    // Invariant: keys[..low] belong and weigh `mass` < goal; keys[high..] do not belong.
    while high - low > 1 {
        let middle = low.midpoint(high);
        keys[low..high].select_nth_unstable(middle - low);
        let upper: f64 = keys[low..middle].iter().map(|&key| weight(key)).sum();
        if mass + upper >= goal {
            high = middle;
        } else {
            mass += upper;
            low = middle;
        }
    }
    high
}

/// Reduces `row` to the tokens of `keys`.
fn keep(row: &mut Distribution, mut keys: Vec<u64>) {
    keys.sort_unstable_by_key(|&key| token(key));
    // Ids ascend and so do places, so no place is written before it is read.
    for (place, &key) in keys.iter().enumerate() {
        let from = row.index(token(key)).unwrap_or(place);
        row.weights[place] = row.weights[from];
    }
    row.weights.truncate(keys.len());
    row.ids.clear();
    row.ids.extend(keys.into_iter().map(token));
}
