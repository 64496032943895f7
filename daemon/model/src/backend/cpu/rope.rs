//! Rotary embedding: angles tabulated as far as they have been needed, and their application to heads.

use std::sync::OnceLock;

use crate::backend::RopeStyle;

/// Positions that are tabulated together.
const BLOCK_LEN: usize = 256;

/// Cosine and sine of every frequency, position by position.
type Block = Box<[[f32; 2]]>;

/// Cosines and sines by position. Blocks are made when a sequence first reaches them: most never grow as long as their
/// model allows.
#[derive(Debug)]
pub struct CpuRope {
    frequencies: Box<[f32]>,
    blocks: Box<[OnceLock<Block>]>,
}

impl CpuRope {
    pub(super) fn new(frequencies: &[f32], positions: usize) -> Self {
        Self {
            frequencies: frequencies.into(),
            blocks: (0..positions.div_ceil(BLOCK_LEN))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Cosine and sine of every frequency at a position.
    ///
    /// # Panics
    /// Beyond the last position.
    pub(super) fn at(&self, position: usize) -> &[[f32; 2]] {
        let pairs = self.frequencies.len();
        let first = position / BLOCK_LEN * BLOCK_LEN;
        let block = self.blocks[position / BLOCK_LEN].get_or_init(|| {
            (first..first + BLOCK_LEN)
                .flat_map(|position| {
                    self.frequencies.iter().map(move |frequency| {
                        let angle = position as f32 * frequency;
                        [angle.cos(), angle.sin()]
                    })
                })
                .collect()
        });
        &block[(position - first) * pairs..][..pairs]
    }
}

/// Turns every head of a row by the angles and multiplies it by `scale`.
pub(super) fn turn(row: &mut [f32], angles: &[[f32; 2]], style: RopeStyle, scale: f32) {
    let half = angles.len();
    for head in row.chunks_exact_mut(2 * half) {
        match style {
            RopeStyle::Interleaved => {
                for ([x, y], [cos, sin]) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                    (*x, *y) = turned(*x, *y, *cos, *sin, scale);
                }
            }
            RopeStyle::Halves => {
                let (xs, ys) = head.split_at_mut(half);
                for ((x, y), [cos, sin]) in xs.iter_mut().zip(ys).zip(angles) {
                    (*x, *y) = turned(*x, *y, *cos, *sin, scale);
                }
            }
        }
    }
}

#[inline(always)]
fn turned(x: f32, y: f32, cos: f32, sin: f32, scale: f32) -> (f32, f32) {
    ((x * cos - y * sin) * scale, (x * sin + y * cos) * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_turn_the_same_pairs() {
        let rope = CpuRope::new(&[1.0, 0.25], 600);
        let angles = rope.at(519);
        let (mut interleaved, mut halves) = ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]);
        turn(&mut interleaved, angles, RopeStyle::Interleaved, 0.5);
        turn(&mut halves, angles, RopeStyle::Halves, 0.5);
        let [a, b, c, d] = interleaved;
        assert_eq!(halves, [a, c, b, d]);
        let angle = 519.0f32;
        assert_eq!(a, (angle.cos() - 2.0 * angle.sin()) * 0.5);
    }
}
