//! Rows on their way into a product, and rows put together.

use candle_core::Tensor;

use super::{CandleBackend, during};
use crate::backend::{BackendError, Input, Norm};

/// Norms each consecutive run of the weight's length.
pub(super) fn rms_norm(x: &Tensor, norm: &Norm<'_, CandleBackend>) -> Result<Tensor, BackendError> {
    during("norm", {
        norm.weight.dim(0).and_then(|width| {
            let grouped = x.reshape(((), width))?;
            candle_nn::ops::rms_norm(&grouped, norm.weight, norm.eps)?.reshape(x.shape())
        })
    })
}

/// The rows themselves.
pub(super) fn taken(x: Input<'_, CandleBackend>) -> Result<Tensor, BackendError> {
    match x {
        Input::Rows(rows) => Ok(rows),
        Input::Normed(rows, norm) => rms_norm(rows, &norm),
    }
}

/// Rows out of several activations, as activations of their own.
pub(super) fn gathered<'a>(
    rows: impl Iterator<Item = (&'a Tensor, usize)>,
) -> candle_core::Result<Tensor> {
    let rows: Vec<Tensor> = rows
        .map(|(x, row)| x.narrow(0, row, 1))
        .collect::<candle_core::Result<_>>()?;
    // A copy even of one row, so that what it came from can go.
    Tensor::cat(&rows, 0)?.force_contiguous()
}
