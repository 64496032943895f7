//! Device memory: exact pieces for weights and caches, and used again for activations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::Gpu;
use crate::backend::BackendError;

/// A piece of memory by when it was allocated, and its address.
type Piece = (u64, u64);

/// Free pieces by size.
type Free = BTreeMap<usize, BTreeSet<Piece>>;

/// Where activations come from and go back to. The stream runs in the order of the calls, so a piece can be handed out
/// again at once. The oldest goes first: equal steps get equal addresses, also when other steps have needed more pieces since,
/// which may well lie at lower addresses.
#[derive(Debug)]
pub(super) struct Pool {
    gpu: Arc<Gpu>,
    free: Mutex<Free>,
}

/// A piece of device memory.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) pointer: u64,
    pub(super) bytes: usize,
    gpu: Arc<Gpu>,
    /// Where it goes when it is dropped, and when it was allocated there; `None`: back to the device.
    pool: Option<(Arc<Pool>, u64)>,
}

impl Pool {
    pub(super) fn new(gpu: &Arc<Gpu>) -> Arc<Self> {
        Arc::new(Self {
            gpu: Arc::clone(gpu),
            free: Mutex::default(),
        })
    }

    /// Memory for activations of `bytes` bytes; what it holds is left over.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<Buffer, BackendError> {
        let bytes = bytes.next_power_of_two().max(256);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let known = free.get_mut(&bytes).and_then(BTreeSet::pop_first);
        drop(free);
        let (age, pointer) = match known {
            Some(piece) => piece,
            None => {
                let pointer = self.gpu.allocate(bytes)?;
                (self.gpu.allocations(), pointer)
            }
        };
        Ok(Buffer {
            pointer,
            bytes,
            gpu: Arc::clone(&self.gpu),
            pool: Some((Arc::clone(self), age)),
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, pointer) in free.values().flatten() {
            self.gpu.free(*pointer);
        }
    }
}

impl Buffer {
    /// Exactly so many bytes, which go back to the device when they are dropped.
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<Self, BackendError> {
        Ok(Self {
            pointer: gpu.allocate(bytes)?,
            bytes,
            gpu: Arc::clone(gpu),
            pool: None,
        })
    }

    /// The same with a content.
    pub(super) fn holding(gpu: &Arc<Gpu>, content: &[u8]) -> Result<Self, BackendError> {
        let buffer = Self::new(gpu, content.len())?;
        gpu.upload(buffer.pointer, content)?;
        Ok(buffer)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.pool {
            Some((pool, age)) => {
                let mut free = pool.free.lock().unwrap_or_else(PoisonError::into_inner);
                free.entry(self.bytes)
                    .or_default()
                    .insert((*age, self.pointer));
            }
            None => self.gpu.free(self.pointer),
        }
    }
}
