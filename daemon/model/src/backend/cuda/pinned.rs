//! Host memory that the device writes without a copy in between.
#![expect(unsafe_code, reason = "the driver allocates it")]

use std::sync::Arc;

use cudarc::driver::result;

use super::driver::{Gpu, short};
use crate::backend::BackendError;

/// Host memory that the device reaches by itself, for results.
#[derive(Debug)]
pub(super) struct Pinned {
    gpu: Arc<Gpu>,
    pointer: *mut f32,
    len: usize,
}

// SAFETY: it owns its memory.
unsafe impl Send for Pinned {}
// SAFETY: a shared borrow only reads.
unsafe impl Sync for Pinned {}

impl Pinned {
    pub(super) fn new(gpu: &Arc<Gpu>, len: usize) -> Result<Self, BackendError> {
        gpu.enter()?;
        gpu.count_allocation();
        let bytes = len.max(1) * size_of::<f32>();
        // SAFETY: zeros are floats, and the memory is set before it is used.
        let pointer = unsafe {
            let pointer = result::malloc_host(bytes, 0)
                .map_err(|error| short(error, "logits that arrive from the GPU", bytes))?;
            std::ptr::write_bytes(pointer.cast::<u8>(), 0, bytes);
            pointer.cast()
        };
        Ok(Self {
            gpu: Arc::clone(gpu),
            pointer,
            len,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn floats(&self) -> &[f32] {
        // SAFETY: so many floats were allocated and set.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }

    pub(super) fn floats_mut(&mut self) -> &mut [f32] {
        // SAFETY: so many floats were allocated and set, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.gpu.synchronize().is_ok() {
            // SAFETY: it was allocated so and nobody uses it any more.
            let _ = unsafe { result::free_host(self.pointer.cast()) };
        }
    }
}
