//! `exp`, sums and maxima that give the same bits everywhere.
//!
//! The system's `exp` differs between libc versions in the last place, and a last place can decide a draw. These use only additions, multiplications, divisions and bit patterns, which IEEE 754 fixes and Rust never fuses. They also
//! vectorize, which calls into libc do not: `wide` has them compiled for the vectors that there are.

#[cfg(test)]
mod tests;
mod wide;

use crate::wide;

/// Independent accumulators of a reduction; fixed, so that the order of additions is.
const LANES: usize = 8;

/// e^x for x ≤ 0, within 2e-7 of the true value relatively; 0 below -87 and for NaN.
#[inline(always)]
pub fn exp_nonpositive(x: f32) -> f32 {
    // Adding 1.5·2²³ rounds to a whole number and leaves that number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // Its product with the exponent is exact, and the rest of ln 2 follows separately.
    const LN2_HIGH: f32 = 355.0 / 512.0;
    const LN2_LOW: f32 = (std::f64::consts::LN_2 - 355.0 / 512.0) as f32;
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let exponent = rounded - ROUND;
    let r = (x - exponent * LN2_HIGH) - exponent * LN2_LOW; // |r| ≤ ln 2 / 2
    // Taylor to r⁷: the next term is below 6e-9.
    let tail =
        1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r * (1.0 / 5040.0))));
    let mantissa = 1.0 + (r + r * r * (0.5 + r * tail));
    let biased = rounded
        .to_bits()
        .wrapping_sub(ROUND.to_bits())
        .wrapping_add(127);
    let power = f32::from_bits(biased << 23);
    if x > -87.0 { mantissa * power } else { 0.0 }
}

wide! {
    /// Sum in 64-bit arithmetic, in a fixed order.
    pub fn sum[W: Copy + Into<f64>](values: &[W]) -> f64 = sum_inline
}

#[inline(always)]
fn sum_inline<W: Copy + Into<f64>>(values: &[W]) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|&value| value.into()).sum();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += value.into();
        }
    }
    lanes.iter().sum::<f64>() + rest
}

wide! {
    /// The sum of e^(x - peak) over values none of which is above `peak`, in a fixed order.
    pub fn sum_exp[](values: &[f32], peak: f32) -> f64 = sum_exp_inline
}

#[inline(always)]
fn sum_exp_inline(values: &[f32], peak: f32) -> f64 {
    /// Values whose sum is kept in 32 bits.
    const BLOCK: usize = 512;
    let mut total = 0.0;
    for block in values.chunks(BLOCK) {
        let mut lanes = [0.0_f32; 2 * LANES];
        let chunks = block.chunks_exact(2 * LANES);
        let rest = chunks.remainder().iter();
        let rest: f32 = rest.map(|&x| exp_nonpositive(x - peak)).sum();
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += exp_nonpositive(x - peak);
            }
        }
        total += f64::from(lanes.iter().sum::<f32>() + rest);
    }
    total
}

wide! {
    /// Turns values into e^((x - peak) * factor).
    pub fn exp_all[](values: &mut [f32], peak: f32, factor: f32) -> () = exp_all_inline
}

#[inline(always)]
fn exp_all_inline(values: &mut [f32], peak: f32, factor: f32) {
    for value in values {
        *value = exp_nonpositive((*value - peak) * factor);
    }
}

wide! {
    /// Largest value, NaN aside; negative infinity when there is none.
    pub fn max[](values: &[f32]) -> f32 = max_inline
}

/// [`max`], for code that is compiled for wide vectors as a whole.
#[inline(always)]
pub fn max_inline(values: &[f32]) -> f32 {
    let greater = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; 2 * LANES];
    let chunks = values.chunks_exact(2 * LANES);
    let rest = chunks
        .remainder()
        .iter()
        .fold(f32::NEG_INFINITY, |a, &b| greater(a, b));
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = greater(*lane, value);
        }
    }
    lanes.iter().fold(rest, |a, &b| greater(a, b))
}

/// Index of the largest value, the lowest on ties and NaN aside; 0 when no value is above negative infinity.
pub fn argmax(values: &[f32]) -> usize {
    let (largest, start) = largest_block(values);
    if largest == f32::NEG_INFINITY {
        return 0;
    }
    start
        + values[start..]
            .iter()
            .position(|&value| value == largest)
            .unwrap_or(0)
}

wide! {
    /// The largest value, and where the first block begins that has it: only that one is searched for its place.
    fn largest_block[](values: &[f32]) -> (f32, usize) = largest_block_inline
}

#[inline(always)]
fn largest_block_inline(values: &[f32]) -> (f32, usize) {
    const BLOCK: usize = 1024;
    let (mut largest, mut start) = (f32::NEG_INFINITY, 0);
    for (number, block) in values.chunks(BLOCK).enumerate() {
        let candidate = max_inline(block);
        if candidate > largest {
            (largest, start) = (candidate, number * BLOCK);
        }
    }
    (largest, start)
}
