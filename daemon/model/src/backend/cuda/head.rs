//! The LM head. Of its logits the device tells what leads in each row; the rest stays there until somebody reads it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::CudaBackend;
use super::driver::{Gpu, bytes};
use super::memory::Buffer;
use super::pinned::Pinned;
use super::rows::CudaHidden;
use super::weights::CudaMatrix;
use crate::TokenId;
use crate::backend::{BackendError, Logits, Norm};
use crate::logits::{Arrivals, LEADING, Leading};

/// Threads of a block, and blocks that look at a row.
const THREADS: usize = 512;
const SLICES: usize = 8;

#[repr(C)]
#[derive(Clone, Copy)]
struct LeadArgs {
    logits: u64,
    out: u64,
    partials: u64,
    done: u64,
    vocabulary: i32,
    none: i32,
}

/// What leads in a row, as `kernels/lead.cu` writes it, in floats: logits, tokens (as bits), the sum of e^(logit - highest)
/// and room.
const TOLD: usize = 2 * LEADING + 4;

/// Most pieces of pinned memory that are kept: rows of logits that a step may well read.
const KEPT: usize = 64;

/// Pinned memory that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<Pinned>>);

impl Spare {
    /// Memory for so many floats.
    fn take(&self, gpu: &Arc<Gpu>, len: usize) -> Result<Pinned, BackendError> {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = spare.iter().position(|pinned| pinned.len() >= len);
        match fitting {
            Some(fitting) => Ok(spare.swap_remove(fitting)),
            None => {
                // Too small ones would only be kept.
                spare.clear();
                Pinned::new(gpu, len.next_power_of_two())
            }
        }
    }

    fn give(&self, pinned: Pinned) {
        let mut spare = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < KEPT {
            spare.push(pinned);
        }
    }
}

/// Logits on the device.
#[derive(Debug)]
struct Held {
    gpu: Arc<Gpu>,
    data: Buffer,
    vocabulary: usize,
    leading: Vec<Leading>,
    /// Row by row: of a draft's rows those after the first refused token are never read.
    fetched: Vec<OnceLock<Result<Pinned, String>>>,
    spare: Arc<Spare>,
}

impl Held {
    fn fetch(&self, row: usize) -> Result<Pinned, BackendError> {
        let mut pinned = self.spare.take(&self.gpu, self.vocabulary)?;
        let to = &mut pinned.floats_mut()[..self.vocabulary];
        let from = self.data.pointer + (row * self.vocabulary * size_of::<f32>()) as u64;
        self.gpu.download(from, to)?;
        Ok(pinned)
    }
}

impl Arrivals for Held {
    fn values(&self, row: usize) -> &[f32] {
        let fetched =
            self.fetched[row].get_or_init(|| self.fetch(row).map_err(|error| error.to_string()));
        fetched
            .as_ref()
            .map_or(&[], |pinned| &pinned.floats()[..self.vocabulary])
    }

    fn leading(&self, row: usize) -> &Leading {
        &self.leading[row]
    }

    fn failure(&self) -> Option<BackendError> {
        let mut failures = self
            .fetched
            .iter()
            .filter_map(|fetched| fetched.get()?.as_ref().err());
        let failure = failures.next()?;
        Some(BackendError::Device {
            device: "cuda",
            reason: format!("the logits did not arrive: {failure}"),
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for fetched in self.fetched.drain(..) {
            if let Some(Ok(pinned)) = fetched.into_inner() {
                self.spare.give(pinned);
            }
        }
    }
}

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
        // What the caller had is given back first.
        out.reset(0, 0)?;
        if rows.is_empty() {
            return self.recorder.borrow_mut().flush();
        }
        // First, because new counters start what was recorded, and what was uploaded for it is gone then.
        let done = self.counters(rows.len())?;
        self.settle(x);
        let list: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
        let list = self.recorder.borrow_mut().upload(bytes(&list))?;
        let normed = self.halves(rows.len(), x.width, 1.0)?;
        self.norm(x, Some((norm, &normed)), Some(list));
        let mut logits = self.multiply(&normed, &[(head, None)])?;
        let told = self.floats(rows.len(), TOLD)?;
        let partials = self.floats(rows.len() * SLICES, TOLD)?;
        let data = logits.swap_remove(0).data;
        let arguments = LeadArgs {
            logits: data.pointer,
            out: told.data.pointer,
            partials: partials.data.pointer,
            done,
            vocabulary: head.outputs as i32,
            none: 0,
        };
        let mut recorder = self.recorder.borrow_mut();
        recorder.launch(
            self.kernels.lead,
            [SLICES, rows.len(), 1],
            THREADS,
            &arguments,
        );
        recorder.flush()?;
        let mut arrived = self.spare.take(&self.gpu, rows.len() * TOLD)?;
        let to = &mut arrived.floats_mut()[..rows.len() * TOLD];
        self.gpu.download(told.data.pointer, to)?;
        let leading = to.chunks_exact(TOLD).map(leading).collect();
        self.spare.give(arrived);
        let held = Held {
            gpu: Arc::clone(&self.gpu),
            data,
            vocabulary: head.outputs,
            leading,
            fetched: rows.iter().map(|_| OnceLock::new()).collect(),
            spare: Arc::clone(&self.spare),
        };
        out.lend(rows.len(), head.outputs, Arc::new(held));
        Ok(())
    }
}

/// Reads what the device told of a row.
fn leading(told: &[f32]) -> Leading {
    let top = std::array::from_fn(|at| (told[at], told[LEADING + at].to_bits() as TokenId));
    Leading::told(top, f64::from(told[2 * LEADING]))
}
