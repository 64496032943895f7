//! What a task does with its chunks, and how the results of spans are folded.

use super::super::disjoint::Disjoint;
use super::super::simd::{Kernel, Simd};
use super::CHUNK;
use super::chunk::{self, Quad, Slots, Space};
use super::products::{Head, QUAD};
use super::softmax::{Softmax, finish, fold};
use super::tasks::{Block, GroupTasks, QUERIES, Tasks};

/// Where results go. A task writes the places of its own queries and chunks only.
pub(super) struct Sink<'a> {
    /// `[rows, heads · head_dim]`.
    pub(super) out: Disjoint<'a, f32>,
    /// Per split query and chunk: largest score, sum of weights, weighted sum of values.
    pub(super) partials: Disjoint<'a, f32>,
}

/// Attends to the chunks of a block's span.
pub(super) struct Attend<'a, 'b> {
    pub(super) tasks: &'a Tasks<'b>,
    pub(super) block: Block<'b>,
    pub(super) sink: &'a Sink<'a>,
}

impl Kernel for Attend<'_, '_> {
    type Output = ();

    #[inline(always)]
    #[expect(unsafe_code, reason = "tasks write disjoint places")]
    fn run<S: Simd>(self, simd: S) {
        let Self { tasks, block, sink } = self;
        let Block {
            tasks: of,
            kv_head,
            queries,
            span,
        } = block;
        let (group, shared) = (of.group, tasks.shared());
        let layer = tasks.caches.0[of.index].layer(tasks.params.layer);
        let head = Head {
            layer: &layer,
            head: kv_head,
        };
        let row_and_head = |query: usize| (query / shared, kv_head * shared + query % shared);
        let slots = if group.is_chain() {
            Slots {
                straight: usize::MAX,
                ancestors: &[],
            }
        } else {
            let ancestors = tasks.plan.ancestors(group, queries.start / shared);
            Slots {
                straight: group.base,
                ancestors,
            }
        };
        let mut space = Space::new();
        let mut so_far: [Option<Softmax>; QUERIES] = [None; QUERIES];
        let start = of.chunks.start + span * tasks.span.min(of.chunks.len());
        let end = of.chunks.end.min(start.saturating_add(tasks.span));
        for chunk in start..end {
            let first = chunk * CHUNK;
            let mut next = queries.start;
            while next < queries.end {
                // The next up to four that see something of the chunk.
                let mut quad = Quad {
                    count: 0,
                    queries: [&[]; QUAD],
                    seen: [(0, 0); QUAD],
                };
                let mut members = [0; QUAD];
                while next < queries.end && quad.count < QUAD {
                    let (row, head) = row_and_head(next);
                    let position = tasks.plan.positions[group.rows.start + row];
                    let from = tasks.oldest(position).max(first);
                    let to = (position + 1).min(first + CHUNK);
                    if from < to {
                        quad.queries[quad.count] =
                            &tasks.queries[tasks.place(group.rows.start + row, head)];
                        quad.seen[quad.count] = (from - first, to - first);
                        members[quad.count] = next;
                        quad.count += 1;
                    }
                    next += 1;
                }
                if quad.count == 0 {
                    continue;
                }
                let softmax = chunk::attend(simd, head, &quad, slots, first, &mut space);
                for (q, query) in members[..quad.count].iter().enumerate() {
                    let (row, head) = row_and_head(*query);
                    let (softmax, sums) = (softmax[q], &space.sums[q]);
                    if of.split() {
                        // SAFETY: the place of this query and chunk, which are this task's alone.
                        let partial =
                            unsafe { sink.partials.part(tasks.partial(&of, row, head, chunk)) };
                        (partial[0], partial[1]) = (softmax.max, softmax.sum);
                        partial[2..].copy_from_slice(&sums[..tasks.head_dim]);
                    } else {
                        // SAFETY: the place of this query, which is this task's alone.
                        let out =
                            unsafe { sink.out.part(tasks.place(group.rows.start + row, head)) };
                        let so_far = &mut so_far[query - queries.start];
                        *so_far = Some(fold(simd, *so_far, out, softmax, sums));
                    }
                }
            }
        }
        if !of.split() {
            for (query, softmax) in queries.zip(so_far) {
                let (row, head) = row_and_head(query);
                // SAFETY: the place of this query, which is this task's alone.
                let out = unsafe { sink.out.part(tasks.place(group.rows.start + row, head)) };
                finish(out, softmax.expect("a row sees itself"));
            }
        }
    }
}

/// Folds what the spans left, for every head of a row.
pub(super) struct Fold<'a, 'b> {
    pub(super) tasks: &'a Tasks<'b>,
    pub(super) group: GroupTasks<'b>,
    pub(super) row: usize,
    pub(super) sink: &'a Sink<'a>,
}

impl Kernel for Fold<'_, '_> {
    type Output = ();

    #[inline(always)]
    #[expect(unsafe_code, reason = "tasks write disjoint places")]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            tasks,
            group,
            row,
            sink,
        } = self;
        let position = tasks.plan.positions[row];
        let chunks = tasks.oldest(position) / CHUNK..position / CHUNK + 1;
        for head in 0..tasks.params.heads {
            // SAFETY: the places of this row, which is this task's alone; the stage before has ended.
            let out = unsafe { sink.out.part(tasks.place(row, head)) };
            let mut so_far = None;
            for chunk in chunks.clone() {
                let place = tasks.partial(&group, row - group.group.rows.start, head, chunk);
                // SAFETY: as above.
                let partial = unsafe { sink.partials.part(place) };
                let softmax = Softmax {
                    max: partial[0],
                    sum: partial[1],
                };
                so_far = Some(fold(simd, so_far, out, softmax, &partial[2..]));
            }
            finish(out, so_far.expect("a row sees itself"));
        }
    }
}
