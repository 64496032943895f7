//! The LM head, and logits on their way to the host.

use std::sync::Arc;

use super::CudaBackend;
use super::driver::bytes;
use super::pinned::Pinned;
use super::rows::CudaHidden;
use super::weights::CudaMatrix;
use crate::backend::{BackendError, Logits, Norm};

impl CudaBackend {
    /// See [`crate::backend::Backend::logits`].
    pub(super) fn said(
        &self,
        x: &CudaHidden,
        norm: &Norm<'_, Self>,
        rows: &[usize],
        head: &CudaMatrix,
        out: &mut Logits,
    ) -> Result<(), BackendError> {
        if rows.is_empty() {
            self.recorder.borrow_mut().flush()?;
            out.reset(0, 0)?;
            return Ok(());
        }
        self.settle(x);
        let list: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
        let list = self.recorder.borrow_mut().upload(bytes(&list))?;
        let normed = self.halves(rows.len(), x.width, 1.0)?;
        self.norm(x, Some((norm, &normed)), Some(list));
        let logits = self.multiply(&normed, &[(head, None)])?;
        self.recorder.borrow_mut().flush()?;
        let len = rows.len() * head.outputs;
        // What the caller had is given back first.
        out.reset(0, 0)?;
        let mut arrived = self.arrivals(len)?;
        let to = Arc::get_mut(&mut arrived).expect("nobody else has it");
        self.gpu
            .download(logits[0].data.pointer, &mut to.floats_mut()[..len])?;
        self.arrivals.borrow_mut().push(Arc::clone(&arrived));
        out.lend(rows.len(), head.outputs, arrived);
        Ok(())
    }

    /// Memory for so many logits that no caller has any more.
    fn arrivals(&self, len: usize) -> Result<Arc<Pinned>, BackendError> {
        let mut all = self.arrivals.borrow_mut();
        let free = all.iter_mut().position(|held| Arc::get_mut(held).is_some());
        let held = free.map(|free| all.swap_remove(free));
        match held.filter(|held| held.len() >= len) {
            Some(held) => Ok(held),
            None => Ok(Arc::new(Pinned::new(&self.gpu, len.next_power_of_two())?)),
        }
    }
}
