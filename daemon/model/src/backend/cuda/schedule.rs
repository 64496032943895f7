//! Which blocks of the attention kernel take which rows and positions: what a plan is to the kernels.

use std::ops::Range;

use super::driver::bytes;
use super::{CudaBackend, CudaCache};
use crate::backend::{BackendError, Group, RowPlan};

/// Positions of a chunk, as `kernels/attention.cu` cuts them.
pub(super) const CHUNK: usize = 128;
/// Queries that a block takes, heads times rows.
pub(super) const QUERIES: usize = 16;
/// Entries that a step's ancestors take at least: as many as trees have that pay, so that what is uploaded after them lies
/// at the same place whatever their shape, and one graph serves all trees of so many rows, and chains.
const LEAST_ANCESTORS: usize = 1024;

/// A row as the kernels see it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    cache: u64,
    capacity: i32,
    place: i32,
    position: i32,
    base: i32,
    line: i32,
    none: i32,
}

/// Rows that find a chunk's positions at the same places; without rows, nothing to do.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    lead: Row,
    first: i32,
    count: i32,
    chunk: i32,
    none: i32,
}

/// A plan on the device, until the next flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scheduled {
    pub(super) rows: u64,
    pub(super) ancestors: u64,
    pub(super) items: u64,
    /// Items, with empty ones at the end so that steps in a row are alike.
    pub(super) count: usize,
    /// Most chunks that a row sees, rounded up for the same.
    pub(super) chunks: usize,
}

/// The plan that was scheduled last.
#[derive(Debug)]
pub(super) struct Known {
    plan: RowPlan,
    caches: Vec<u64>,
    /// Query heads that share a key's.
    shared: usize,
    flushes: u64,
    scheduled: Scheduled,
}

/// Adds the items of a group whose first row is `first` in the batch, up to `together` rows each.
fn push_items(items: &mut Vec<Item>, group: &Group, first: usize, rows: &[Row], together: usize) {
    let mut push = |from: usize, to: usize, chunks: Range<usize>| {
        items.extend(chunks.map(|chunk| Item {
            lead: rows[to - 1],
            first: (first + from) as i32,
            count: (to - from) as i32,
            chunk: chunk as i32,
            none: 0,
        }));
    };
    let end = |to: usize| rows[to - 1].position as usize / CHUNK + 1;
    // What lies before a tree, all its rows find in order; the tree's own places are each row's own.
    let before = match group.is_chain() {
        true => usize::MAX,
        false => group.base / CHUNK,
    };
    for from in (0..rows.len()).step_by(together) {
        let to = (from + together).min(rows.len());
        push(from, to, 0..end(to).min(before));
    }
    if !group.is_chain() {
        (0..rows.len()).for_each(|row| push(row, row + 1, before..end(row + 1)));
    }
}

impl CudaBackend {
    /// Puts the plan where the kernels find it, once for all layers of a pass. `shared` query heads share a key's.
    pub(super) fn scheduled(
        &self,
        plan: &RowPlan,
        caches: &[CudaCache],
        shared: usize,
    ) -> Result<Scheduled, BackendError> {
        let mut recorder = self.recorder.borrow_mut();
        let mut known = self.scheduled.borrow_mut();
        let same = known.as_ref().filter(|known| {
            known.flushes == recorder.flushes()
                && known.shared == shared
                && known.plan == *plan
                && known
                    .caches
                    .iter()
                    .eq(caches.iter().map(|cache| &cache.data.pointer))
        });
        if let Some(known) = same {
            return Ok(known.scheduled);
        }
        let together = (QUERIES / shared).max(1);
        let (mut rows, mut ancestors) = (Vec::with_capacity(plan.positions.len()), Vec::new());
        let mut items = Vec::new();
        for (group, cache) in plan.groups.iter().zip(caches) {
            let first = rows.len();
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
            push_items(&mut items, group, first, &rows[first..], together);
        }
        let last = plan.positions.iter().max().copied().unwrap_or(0);
        let chunks = (last / CHUNK + 1).next_power_of_two();
        // As many as one sequence's rows can need, whether they are a tree or a chain.
        let usual = 2 * rows.len() + rows.len().div_ceil(together) * chunks;
        let count = items.len().max(usual).next_power_of_two();
        items.resize(count, Item::default());
        let room = ancestors.len().next_power_of_two().max(LEAST_ANCESTORS);
        ancestors.resize(room, 0_u32);
        // Together, so that none flushes another away.
        let mut all = Vec::new();
        let [rows_at, ancestors_at, items_at] = [bytes(&rows), bytes(&ancestors), bytes(&items)]
            .map(|part| {
                let at = all.len();
                all.extend_from_slice(part);
                all.resize(all.len().next_multiple_of(64), 0);
                at as u64
            });
        let at = recorder.upload(&all)?;
        let scheduled = Scheduled {
            rows: at + rows_at,
            ancestors: at + ancestors_at,
            items: at + items_at,
            count,
            chunks,
        };
        *known = Some(Known {
            plan: plan.clone(),
            caches: caches.iter().map(|cache| cache.data.pointer).collect(),
            shared,
            flushes: recorder.flushes(),
            scheduled,
        });
        Ok(scheduled)
    }
}
