//! Attention over the cache: turn queries and keys, store keys and values, then every query over what it sees.
//!
//! Positions are cut into chunks at fixed places. A query's softmax and sum are taken chunk by chunk, each in one fixed
//! order, and folded together in the order of the chunks. What a query gets is thus the same to the bit whichever
//! thread takes which chunk, whatever else the batch holds, and whether its row hangs in a tree or a chain: a row sees
//! every position once, by whatever slot.

mod chunk;
mod kernels;
mod products;
mod softmax;
mod tasks;
#[cfg(test)]
mod tests;

use kernels::{Attend, Fold, Sink};
use tasks::Tasks;

use super::cache::CpuCache;
use super::compute::Compute;
use super::disjoint::Disjoint;
use super::norm::Norm;
use super::rope;
use super::{CpuBackend, CpuHidden};
use crate::backend::{AttentionParams, BackendError, RowPlan};

/// Positions of a chunk; a divisor of the cache's block, so that a chunk's past lies in one block.
const CHUNK: usize = 128;
/// The widest head there is room for on the stack.
pub(super) const HEAD_DIM_LIMIT: usize = 256;

/// The caches of a batch, one per group of its plan, shared by the threads of a stage.
#[derive(Clone, Copy)]
struct Caches<'a>(&'a [CpuCache]);

#[expect(unsafe_code, reason = "threads share the caches; see LayerView")]
// SAFETY: it stands for a mutable borrow of the caches, which nobody else uses; what the threads do with them goes
// through the unsafe functions of `LayerView`.
unsafe impl Sync for Caches<'_> {}

/// See [`crate::backend::Backend::attention`]; returns `[rows, heads · head_dim]`.
pub(super) fn attend(
    compute: &Compute,
    params: &AttentionParams<'_, CpuBackend>,
    [mut queries, mut keys, values]: [CpuHidden; 3],
    plan: &RowPlan,
    caches: &mut [CpuCache],
) -> Result<CpuHidden, BackendError> {
    let mut out = compute.hidden(queries.rows(), queries.width)?;
    let caches = Caches(caches);
    let turned = (Some(&mut queries), &mut keys);
    store(compute, params, turned, &values, plan, caches);

    let threads = compute.pool.threads();
    let tasks = Tasks::new(params, &queries.values, plan, caches, threads);
    let mut partials = compute.arena.take(tasks.partial_floats())?;
    let sink = Sink {
        out: Disjoint::new(&mut out.values),
        partials: Disjoint::new(&mut partials),
    };
    let (pool, isa) = (&compute.pool, compute.isa);
    pool.run(tasks.count(), |task| {
        isa.run(Attend {
            tasks: &tasks,
            block: tasks.block(task),
            sink: &sink,
        });
    });
    pool.run(tasks.split_count(), |row| {
        if let Some(group) = tasks.split_group(row) {
            isa.run(Fold {
                tasks: &tasks,
                group,
                row,
                sink: &sink,
            });
        }
    });
    for used in [queries.values, keys.values, values.values, partials] {
        compute.arena.give(used);
    }
    Ok(out)
}

/// See [`crate::backend::Backend::remember`].
pub(super) fn remember(
    compute: &Compute,
    params: &AttentionParams<'_, CpuBackend>,
    [mut keys, values]: [CpuHidden; 2],
    plan: &RowPlan,
    caches: &mut [CpuCache],
) {
    let caches = Caches(caches);
    store(compute, params, (None, &mut keys), &values, plan, caches);
    compute.arena.give(keys.values);
    compute.arena.give(values.values);
}

/// Norms and turns keys, and queries where there are any, scales the queries, and writes keys and values to the caches.
#[expect(unsafe_code, reason = "threads write different rows")]
fn store(
    compute: &Compute,
    params: &AttentionParams<'_, CpuBackend>,
    (queries, keys): (Option<&mut CpuHidden>, &mut CpuHidden),
    values: &CpuHidden,
    plan: &RowPlan,
    caches: Caches<'_>,
) {
    let (rows, isa) = (keys.rows(), compute.isa);
    let key_width = keys.width;
    let query_width = queries.as_ref().map_or(0, |queries| queries.width);
    let mut none = CpuHidden::default();
    let queries = Disjoint::new(&mut queries.unwrap_or(&mut none).values);
    let keys = Disjoint::new(&mut keys.values);
    compute.rows(rows, query_width + 2 * key_width, |row| {
        let at = plan.groups.partition_point(|group| group.rows.end <= row);
        let (group, caches) = (&plan.groups[at], caches);
        let layer = caches.0[at].layer(params.layer);
        let head_dim = caches.0[at].shape().head_dim;
        let angles = params.rope.at(plan.positions[row]);
        // SAFETY: each row is taken once, and its parts belong to no other row.
        let (query, key) = unsafe {
            (
                queries.part(row * query_width..(row + 1) * query_width),
                keys.part(row * key_width..(row + 1) * key_width),
            )
        };
        if let Some([query_norm, key_norm]) = &params.head_norms {
            Norm::from(query_norm).apply(isa, query);
            Norm::from(key_norm).apply(isa, key);
        }
        rope::turn(query, angles, params.rope_style, params.scale);
        rope::turn(key, angles, params.rope_style, 1.0);
        let heads = key
            .chunks_exact(head_dim)
            .zip(values.row(row).chunks_exact(head_dim));
        for (head, (key, value)) in heads.enumerate() {
            // SAFETY: the slot is this row's own, and nobody reads the cache in this stage.
            unsafe { layer.write(head, group.place(row - group.rows.start), key, value) };
        }
    });
}
