//! Attention over the caches: what the kernels are told of rows and caches, and their launches.

use super::recorder::Start;
use super::rows::CudaHidden;
use super::schedule::{CHUNK, QUERIES, Scheduled};
use super::{CudaBackend, CudaCache};
use crate::backend::{AttentionParams, BackendError, RopeStyle, RowPlan};

/// Floats before a chunk's sums.
const STATISTICS: usize = 4;
/// Threads of a block that attends.
const THREADS: usize = 128;
/// The widest head.
pub(super) const WIDEST: usize = 256;

/// Bytes of shared memory that a block needs: queries, weights and values.
pub(super) fn room(head_dim: usize) -> usize {
    let queries = QUERIES * (head_dim.next_multiple_of(64) + 8);
    2 * (queries + QUERIES * (CHUNK + 8) + CHUNK * (head_dim + 8))
}

#[repr(C)]
#[derive(Clone, Copy)]
struct StoreArgs {
    q: u64,
    k: u64,
    v: u64,
    rows: u64,
    cos: u64,
    sin: u64,
    q_norm: u64,
    k_norm: u64,
    q_eps: f32,
    k_eps: f32,
    scale: f32,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    layer: i32,
    halves: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct AttendArgs {
    q: u64,
    out: u64,
    rows: u64,
    items: u64,
    ancestors: u64,
    partials: u64,
    done: u64,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    layer: i32,
    window: i32,
    chunks: i32,
    groups: i32,
    none: i32,
}

impl CudaBackend {
    /// Turns queries and keys and stores keys and values. Returns what
    /// [`Self::scheduled`] does.
    pub(super) fn stored(
        &self,
        params: &AttentionParams<'_, Self>,
        queries: Option<&CudaHidden>,
        [keys, values]: [&CudaHidden; 2],
        plan: &RowPlan,
        caches: &[CudaCache],
    ) -> Result<Scheduled, BackendError> {
        let shared = caches
            .first()
            .map_or(1, |cache| params.heads / cache.shape.kv_heads);
        let scheduled = self.scheduled(plan, caches, shared)?;
        let Some(cache) = caches.first() else {
            return Ok(scheduled);
        };
        let shape = cache.shape;
        if shape.head_dim > WIDEST || !shape.head_dim.is_multiple_of(8) {
            return Err(BackendError::Unsupported(format!(
                "heads of {} elements on CUDA devices; they may have up to {WIDEST}, a multiple of 8",
                shape.head_dim
            )));
        }
        let norms = params.head_norms.as_ref();
        let norm = |at: usize| norms.map_or((0, 0.0), |n| (n[at].weight.0.pointer, n[at].eps));
        let arguments = StoreArgs {
            q: queries.map_or(0, |queries| queries.data.pointer),
            k: keys.data.pointer,
            v: values.data.pointer,
            rows: scheduled.rows,
            cos: params.rope.cos.pointer,
            sin: params.rope.sin.pointer,
            q_norm: norm(0).0,
            k_norm: norm(1).0,
            q_eps: norm(0).1,
            k_eps: norm(1).1,
            scale: params.scale,
            heads: params.heads as i32,
            kv_heads: shape.kv_heads as i32,
            head_dim: shape.head_dim as i32,
            layer: params.layer as i32,
            halves: (params.rope_style == RopeStyle::Halves).into(),
        };
        let grid = [params.heads + shape.kv_heads, keys.rows, 1];
        let threads = (shape.head_dim / 2).next_multiple_of(32);
        self.recorder
            .borrow_mut()
            .launch(self.kernels.store, grid, threads, &arguments);
        Ok(scheduled)
    }

    /// See [`crate::backend::Backend::attention`]; the result are halves.
    pub(super) fn attended(
        &self,
        params: &AttentionParams<'_, Self>,
        [queries, keys, values]: [CudaHidden; 3],
        plan: &RowPlan,
        caches: &[CudaCache],
    ) -> Result<CudaHidden, BackendError> {
        let out = self.halves(queries.rows, queries.width, 1.0)?;
        let Some(cache) = caches.first() else {
            return Ok(out);
        };
        let shape = cache.shape;
        let per_row = shape.kv_heads * (params.heads / shape.kv_heads).div_ceil(QUERIES);
        // First, because new counters start what was recorded, and what was uploaded for it is gone then.
        let done = self.counters(queries.rows * per_row)?;
        let scheduled = self.stored(params, Some(&queries), [&keys, &values], plan, caches)?;
        let chunks = scheduled.chunks;
        let partials = match chunks {
            1 => None,
            _ => {
                let each = (STATISTICS + shape.head_dim) * size_of::<f32>();
                Some(
                    self.pool
                        .take(queries.rows * params.heads * chunks * each)?,
                )
            }
        };
        let arguments = AttendArgs {
            q: queries.data.pointer,
            out: out.data.pointer,
            rows: scheduled.rows,
            items: scheduled.items,
            ancestors: scheduled.ancestors,
            partials: partials.as_ref().map_or(0, |partials| partials.pointer),
            done,
            heads: params.heads as i32,
            kv_heads: shape.kv_heads as i32,
            head_dim: shape.head_dim as i32,
            layer: params.layer as i32,
            window: params.window.map_or(0, |window| window as i32),
            chunks: chunks as i32,
            groups: queries.rows.div_ceil(8) as i32,
            none: 0,
        };
        let start = Start {
            function: self.kernels.attend,
            grid: [scheduled.count, per_row, 1],
            threads: THREADS,
            room: room(shape.head_dim),
            fills: false,
        };
        self.recorder.borrow_mut().record(start, &arguments);
        Ok(out)
    }
}
