//! Rows on their way into a product.

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
