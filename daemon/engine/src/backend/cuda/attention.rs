//! Attention over the caches: what the kernels are told of rows and caches, and their launches.

use super::driver::bytes;
use super::memory::Buffer;
use super::rows::CudaHidden;
use super::{CudaBackend, CudaCache};
use crate::backend::{AttentionParams, BackendError, RopeStyle, RowPlan};

/// Positions of a chunk, as `kernels/attention.cu` cuts them.
const CHUNK: usize = 128;
/// Query heads that a block takes.
const SHARE: usize = 4;
/// Entries that a step's ancestors take at least: as many as trees have that pay, so that what is uploaded after them lies
/// at the same place whatever their shape, and one graph serves all trees of so many rows, and chains.
const LEAST_ANCESTORS: usize = 1024;
/// The widest head.
const WIDEST: usize = 256;

/// A row as the kernels see it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    cache: u64,
    capacity: i32,
    place: i32,
    position: i32,
    base: i32,
    line: i32,
    none: i32,
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
    ancestors: u64,
    partials: u64,
    done: u64,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    layer: i32,
    window: i32,
    chunks: i32,
}

/// A plan on the device, until the next flush.
#[derive(Debug)]
pub(super) struct Planned {
    plan: RowPlan,
    caches: Vec<u64>,
    flushes: u64,
    rows: u64,
    ancestors: u64,
    /// Most chunks that a row sees, rounded up so that steps in a row are alike.
    chunks: usize,
}

/// Counters that are zero between launches.
#[derive(Debug)]
pub(super) struct Counters(Option<Buffer>);

impl Counters {
    pub(super) fn none() -> Self {
        Self(None)
    }
}

impl CudaBackend {
    /// Puts the plan where the kernels find it, once for all layers of a pass.
    fn planned(
        &self,
        plan: &RowPlan,
        caches: &[CudaCache],
    ) -> Result<(u64, u64, usize), BackendError> {
        let mut recorder = self.recorder.borrow_mut();
        let mut known = self.planned.borrow_mut();
        let same = known.as_ref().filter(|known| {
            known.flushes == recorder.flushes()
                && known.plan == *plan
                && known
                    .caches
                    .iter()
                    .eq(caches.iter().map(|cache| &cache.data.pointer))
        });
        if let Some(known) = same {
            return Ok((known.rows, known.ancestors, known.chunks));
        }
        let (mut rows, mut ancestors) = (Vec::with_capacity(plan.positions.len()), Vec::new());
        for (group, cache) in plan.groups.iter().zip(caches) {
            for row in 0..group.len() {
                let line = match group.is_chain() {
                    true => -1,
                    false => ancestors.len() as i32,
                };
                ancestors.extend(plan.ancestors(group, row).iter().map(|at| *at as u32));
                rows.push(Row {
                    cache: cache.data.pointer,
                    capacity: cache.capacity as i32,
                    place: group.place(row) as i32,
                    position: plan.positions[group.rows.start + row] as i32,
                    base: group.base as i32,
                    line,
                    none: 0,
                });
            }
        }
        let last = plan.positions.iter().max().copied().unwrap_or(0);
        let chunks = (last / CHUNK + 1).next_power_of_two();
        let room = ancestors.len().next_power_of_two().max(LEAST_ANCESTORS);
        ancestors.resize(room, 0_u32);
        // Together, so that one does not flush the other away.
        let split = size_of_val(&rows[..]).next_multiple_of(64);
        let mut both = bytes(&rows).to_vec();
        both.resize(split, 0);
        both.extend(bytes(&ancestors));
        let at = recorder.upload(&both)?;
        *known = Some(Planned {
            plan: plan.clone(),
            caches: caches.iter().map(|cache| cache.data.pointer).collect(),
            flushes: recorder.flushes(),
            rows: at,
            ancestors: at + split as u64,
            chunks,
        });
        Ok((at, at + split as u64, chunks))
    }

    /// Turns queries and keys and stores keys and values. Returns what [`Self::planned`] does.
    pub(super) fn stored(
        &self,
        params: &AttentionParams<'_, Self>,
        queries: Option<&CudaHidden>,
        [keys, values]: [&CudaHidden; 2],
        plan: &RowPlan,
        caches: &[CudaCache],
    ) -> Result<(u64, u64, usize), BackendError> {
        let planned = self.planned(plan, caches)?;
        let Some(cache) = caches.first() else {
            return Ok(planned);
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
            rows: planned.0,
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
        Ok(planned)
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
        let per_row = shape.kv_heads * (params.heads / shape.kv_heads).div_ceil(SHARE);
        // First, because new counters start what was recorded, and what was uploaded for it is gone then.
        let done = self.counters(queries.rows * per_row)?;
        let (rows, ancestors, chunks) =
            self.stored(params, Some(&queries), [&keys, &values], plan, caches)?;
        let partials = match chunks {
            1 => None,
            _ => {
                let each = (2 + shape.head_dim) * size_of::<f32>();
                Some(
                    self.pool
                        .take(queries.rows * params.heads * chunks * each)?,
                )
            }
        };
        let arguments = AttendArgs {
            q: queries.data.pointer,
            out: out.data.pointer,
            rows,
            ancestors,
            partials: partials.as_ref().map_or(0, |partials| partials.pointer),
            done,
            heads: params.heads as i32,
            kv_heads: shape.kv_heads as i32,
            head_dim: shape.head_dim as i32,
            layer: params.layer as i32,
            window: params.window.map_or(0, |window| window as i32),
            chunks: chunks as i32,
        };
        let grid = [chunks, per_row, queries.rows];
        self.recorder
            .borrow_mut()
            .launch(self.kernels.attend, grid, CHUNK, &arguments);
        Ok(out)
    }

    /// Room for so many counters, all zero.
    fn counters(&self, count: usize) -> Result<u64, BackendError> {
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
