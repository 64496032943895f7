//! The table of rotary angles.

use candle_core::{Device, Tensor};

use super::during;
use crate::backend::BackendError;

/// Cosines and sines, each `[positions, head_dim / 2]`, f32.
#[derive(Debug)]
pub struct CandleRope {
    pub(super) cos: Tensor,
    pub(super) sin: Tensor,
}

impl CandleRope {
    pub(super) fn new(
        frequencies: &[f32],
        positions: usize,
        device: &Device,
    ) -> Result<Self, BackendError> {
        let angles = (0..positions)
            .flat_map(|position| frequencies.iter().map(move |f| position as f32 * f));
        let (cos, sin): (Vec<f32>, Vec<f32>) =
            angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        let shape = (positions, frequencies.len());
        Ok(Self {
            cos: during("rope", Tensor::from_vec(cos, shape, device))?,
            sin: during("rope", Tensor::from_vec(sin, shape, device))?,
        })
    }
}
