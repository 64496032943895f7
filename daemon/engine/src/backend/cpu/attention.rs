//! Attention over the cache: turn queries and keys, store keys and values, then every query over what it sees.
//!
//! Positions are cut into chunks at fixed places. A query's softmax and sum are taken chunk by chunk, each in one fixed
//! order, and folded together in the order of the chunks. What a query gets is thus the same to the bit whichever
//! thread takes which chunk, whatever else the batch holds, and whether its row hangs in a tree or a chain: a row sees
//! every position once, by whatever slot.

mod chunk;
mod products;
mod softmax;
mod tasks;
#[cfg(test)]
mod tests;

use tasks::{Sink, Tasks};

use super::arena::Buffer;
use super::cache::CpuCache;
use super::disjoint::Disjoint;
use super::rope::{self, CpuRope};
use super::{BackendError, Compute};
use crate::backend::{AttentionParams, RowPlan};

/// Positions of a chunk; a divisor of the cache's block, so that a chunk's past lies in one block.
const CHUNK: usize = 128;
/// The widest head there is room for on the stack.
pub(super) const HEAD_DIM_LIMIT: usize = 256;
/// Floats of queries, keys and values below which another thread's help costs more than it gives.
const SERIAL: usize = 8192;

/// The caches of a batch, one per group of its plan, shared by the threads of a stage.
struct Caches<'a, 'b>(&'a [&'b mut CpuCache]);

#[expect(unsafe_code, reason = "threads share the caches; see LayerView")]
// SAFETY: it stands for mutable borrows of the caches, which nobody else uses; what the threads do with them goes
// through the unsafe functions of `LayerView`.
unsafe impl Sync for Caches<'_, '_> {}

/// Queries, keys and values `[rows, heads · head_dim]` of a batch.
pub(super) struct Projections<'a> {
    pub(super) queries: &'a mut [f32],
    pub(super) keys: &'a mut [f32],
    pub(super) values: &'a [f32],
}

/// See [`crate::backend::Backend::attention`]; returns `[rows, heads · head_dim]`.
pub(super) fn attend(
    compute: &Compute,
    params: &AttentionParams<'_, CpuRope>,
    qkv: Projections<'_>,
    plan: &RowPlan,
    caches: &mut [&mut CpuCache],
) -> Result<Buffer, BackendError> {
    let mut out = compute.arena.take(qkv.queries.len())?;
    let caches = Caches(caches);
    let Projections {
        queries,
        keys,
        values,
    } = qkv;
    store(compute, params, [queries, keys], values, plan, &caches);

    let tasks = Tasks::new(params, queries, plan, &caches, compute.pool.threads());
    let mut partials = compute.arena.take(tasks.partial_floats())?;
    let sink = Sink {
        out: Disjoint::new(&mut out),
        partials: Disjoint::new(&mut partials),
    };
    let isa = compute.isa;
    compute
        .pool
        .run(tasks.count(), |task| tasks.run(isa, task, &sink));
    compute
        .pool
        .run(tasks.split_count(), |row| tasks.finish(isa, row, &sink));
    Ok(out)
}

/// Turns queries and keys by their positions, scales the queries, and writes keys and values to the caches.
#[expect(unsafe_code, reason = "threads write different rows")]
fn store(
    compute: &Compute,
    params: &AttentionParams<'_, CpuRope>,
    [queries, keys]: [&mut [f32]; 2],
    values: &[f32],
    plan: &RowPlan,
    caches: &Caches<'_, '_>,
) {
    let rows = plan.positions.len();
    let (query_width, key_width) = (queries.len() / rows, keys.len() / rows);
    let (queries, keys) = (Disjoint::new(queries), Disjoint::new(keys));
    compute.rows(rows, query_width + 2 * key_width, SERIAL, |row| {
        let at = plan.groups.partition_point(|group| group.rows.end <= row);
        let (group, cache) = (&plan.groups[at], caches);
        let layer = cache.0[at].layer(params.layer);
        let shape = cache.0[at].shape();
        let angles = params.rope.at(plan.positions[row]);
        // SAFETY: each row is taken once, and its parts belong to no other row.
        let (query, key) = unsafe {
            (
                queries.part(row * query_width..(row + 1) * query_width),
                keys.part(row * key_width..(row + 1) * key_width),
            )
        };
        rope::turn(query, angles, params.rope_style, params.scale);
        rope::turn(key, angles, params.rope_style, 1.0);
        let value = &values[row * key_width..(row + 1) * key_width];
        let heads = key
            .chunks_exact(shape.head_dim)
            .zip(value.chunks_exact(shape.head_dim));
        for (head, (key, value)) in heads.enumerate() {
            // SAFETY: the slot is this row's own, and nobody reads the cache in this stage.
            unsafe { layer.write(head, group.base + row - group.rows.start, key, value) };
        }
    });
}
