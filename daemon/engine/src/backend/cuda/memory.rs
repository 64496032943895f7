//! Device memory: exact pieces for weights and caches, and used again for activations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::driver::Gpu;
use crate::backend::BackendError;

/// Free pieces by size and address.
type Free = BTreeMap<usize, BTreeSet<u64>>;

/// Where activations come from and go back to. The stream runs in the order of the calls, so a piece can be handed out
/// again at once. The lowest address goes first: equal steps get equal addresses.
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
    /// Where it goes when it is dropped; `None`: back to the device.
    pool: Option<Arc<Pool>>,
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
        let pointer = match known {
            Some(pointer) => pointer,
            None => self.gpu.allocate(bytes)?,
        };
        Ok(Buffer {
            pointer,
            bytes,
            gpu: Arc::clone(&self.gpu),
            pool: Some(Arc::clone(self)),
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let free = self.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        for pointer in free.values().flatten() {
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
            Some(pool) => {
                let mut free = pool.free.lock().unwrap_or_else(PoisonError::into_inner);
                free.entry(self.bytes).or_default().insert(self.pointer);
            }
            None => self.gpu.free(self.pointer),
        }
    }
}
