//! Keys and values of one sequence in one piece of device memory, `[layers, 2, kv_heads, capacity, head_dim]`, f16.

use super::CudaBackend;
use super::driver::bytes;
use super::memory::Buffer;
use crate::backend::{BackendError, CacheShape};

/// Positions by which a cache grows at least.
const GROWTH: usize = 256;

/// Keys and values of one sequence. What is stored beyond its length is left over and never read.
#[derive(Debug)]
pub struct CudaCache {
    pub(super) data: Buffer,
    pub(super) shape: CacheShape,
    pub(super) capacity: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct KeepArgs {
    cache: u64,
    offsets: u64,
    count: i32,
    from: i32,
    capacity: i32,
    head_dim: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CopyArgs {
    source: u64,
    target: u64,
    source_capacity: i32,
    target_capacity: i32,
    positions: i32,
    head_dim: i32,
}

/// Runs of positions in a cache: keys and values of every head of every layer.
fn lines(shape: CacheShape) -> usize {
    2 * shape.layers * shape.kv_heads
}

impl CudaBackend {
    pub(super) fn new_cache(
        &self,
        shape: CacheShape,
        positions: usize,
    ) -> Result<CudaCache, BackendError> {
        let capacity = positions.max(1).next_multiple_of(GROWTH);
        let data = Buffer::new(&self.gpu, 2 * lines(shape) * capacity * shape.head_dim)?;
        // A chunk's last positions are multiplied by zero, which only numbers survive.
        self.gpu.clear(data.pointer, data.bytes)?;
        Ok(CudaCache {
            data,
            shape,
            capacity,
        })
    }

    /// A cache for `capacity` positions that begins as another one's first `positions` do.
    pub(super) fn copied(
        &self,
        cache: &CudaCache,
        positions: usize,
        capacity: usize,
    ) -> Result<CudaCache, BackendError> {
        let copy = self.new_cache(cache.shape, capacity)?;
        let arguments = CopyArgs {
            source: cache.data.pointer,
            target: copy.data.pointer,
            source_capacity: cache.capacity as i32,
            target_capacity: copy.capacity as i32,
            positions: positions.min(cache.capacity) as i32,
            head_dim: cache.shape.head_dim as i32,
        };
        let mut recorder = self.recorder.borrow_mut();
        recorder.launch(
            self.kernels.copy,
            [lines(cache.shape), 1, 1],
            256,
            &arguments,
        );
        recorder.flush()?;
        Ok(copy)
    }

    pub(super) fn kept(
        &self,
        cache: &CudaCache,
        from: usize,
        offsets: &[usize],
    ) -> Result<(), BackendError> {
        if offsets.iter().enumerate().all(|(to, offset)| to == *offset) {
            return Ok(());
        }
        let list: Vec<u32> = offsets.iter().map(|offset| *offset as u32).collect();
        let mut recorder = self.recorder.borrow_mut();
        let arguments = KeepArgs {
            cache: cache.data.pointer,
            offsets: recorder.upload(bytes(&list))?,
            count: list.len() as i32,
            from: from as i32,
            capacity: cache.capacity as i32,
            head_dim: cache.shape.head_dim as i32,
        };
        let threads = cache.shape.head_dim.next_multiple_of(32);
        recorder.launch(
            self.kernels.keep,
            [lines(cache.shape), 1, 1],
            threads,
            &arguments,
        );
        recorder.flush()
    }
}
