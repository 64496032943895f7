//! Counters by which the blocks of a kernel tell which of them ends last.

use super::CudaBackend;
use super::memory::Buffer;
use crate::backend::BackendError;

/// Counters that are zero between launches.
#[derive(Debug, Default)]
pub(super) struct Counters(Option<Buffer>);

impl CudaBackend {
    /// Room for so many counters, all zero.
    pub(super) fn counters(&self, count: usize) -> Result<u64, BackendError> {
        let mut counters = self.counters.borrow_mut();
        if let Some(buffer) = counters.0.as_ref().filter(|old| old.bytes >= 4 * count) {
            return Ok(buffer.pointer);
        }
        // What was recorded may still count with the old ones.
        self.recorder.borrow_mut().flush()?;
        let buffer = Buffer::new(&self.gpu, 4 * count.next_power_of_two().max(1 << 16))?;
        self.gpu.clear(buffer.pointer, buffer.bytes)?;
        Ok(counters.0.insert(buffer).pointer)
    }
}
