//! How the attention of a batch is cut into tasks: up to sixteen queries that share a key head, over all chunks that
//! they see or, where that leaves threads without work, over a span of them whose results are folded afterwards.

use std::ops::Range;

use super::super::disjoint::Disjoint;
use super::super::rope::CpuRope;
use super::super::simd::{Isa, Kernel, Simd};
use super::chunk::{self, Quad, Slots, Space};
use super::products::{Head, QUAD};
use super::softmax::{Softmax, finish, fold};
use super::{CHUNK, Caches};
use crate::backend::{AttentionParams, Group, RowPlan};

/// Queries of a task: each chunk is then read once into the nearest cache for all of them.
const QUERIES: usize = 16;
/// Tasks per thread that even out the threads' ends.
const TASKS_PER_THREAD: usize = 4;

/// Where results go. A task writes the places of its own queries and chunks only.
pub(super) struct Sink<'a> {
    /// `[rows, heads · head_dim]`.
    pub(super) out: Disjoint<'a, f32>,
    /// Per split query and chunk: largest score, sum of weights, weighted sum of values.
    pub(super) partials: Disjoint<'a, f32>,
}

/// The attention of a batch.
pub(super) struct Tasks<'a> {
    params: &'a AttentionParams<'a, CpuRope>,
    queries: &'a [f32],
    plan: &'a RowPlan,
    caches: &'a Caches<'a, 'a>,
    kv_heads: usize,
    head_dim: usize,
    /// Chunks of a span.
    span: usize,
}

/// The tasks of one group, and what precedes them.
struct GroupTasks<'a> {
    index: usize,
    group: &'a Group,
    /// Queries per key head that lie together: all of a chain's, one row's of a tree.
    run: usize,
    /// Blocks of queries per key head.
    blocks: usize,
    /// Chunks that some query sees.
    chunks: Range<usize>,
    spans: usize,
    first_task: usize,
    /// Where its partial results begin, in queries times chunks.
    first_partial: usize,
}

impl GroupTasks<'_> {
    fn split(&self) -> bool {
        self.spans > 1
    }
}

/// Up to sixteen queries of one key head.
struct Block<'a> {
    tasks: GroupTasks<'a>,
    kv_head: usize,
    /// Indices among the group's queries of this key head, row by row.
    queries: Range<usize>,
    span: usize,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(
        params: &'a AttentionParams<'a, CpuRope>,
        queries: &'a [f32],
        plan: &'a RowPlan,
        caches: &'a Caches<'a, '_>,
        threads: usize,
    ) -> Self {
        let shape = caches.0[0].shape();
        let mut tasks = Self {
            params,
            queries,
            plan,
            caches,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            span: usize::MAX,
        };
        let work: usize = tasks
            .groups()
            .map(|group| group.blocks * tasks.kv_heads * group.chunks.len())
            .sum();
        if threads > 1 {
            tasks.span = work.div_ceil(threads * TASKS_PER_THREAD).max(1);
        }
        tasks
    }

    /// Query heads that share a key head.
    fn shared(&self) -> usize {
        self.params.heads / self.kv_heads
    }

    /// The first position that a row sees.
    fn oldest(&self, position: usize) -> usize {
        let window = self.params.window.unwrap_or(usize::MAX);
        (position + 1).saturating_sub(window)
    }

    fn groups(&self) -> impl Iterator<Item = GroupTasks<'a>> {
        let (mut task, mut partial) = (0, 0);
        self.plan
            .groups
            .iter()
            .enumerate()
            .map(move |(index, group)| {
                let run = self.shared() * if group.is_chain() { group.len() } else { 1 };
                let runs = self.shared() * group.len() / run;
                let positions = &self.plan.positions[group.rows.clone()];
                let first = positions.iter().copied().min().unwrap_or(0);
                let last = positions.iter().copied().max().unwrap_or(0);
                let chunks = self.oldest(first) / CHUNK..last / CHUNK + 1;
                let blocks = runs * run.div_ceil(QUERIES);
                let tasks = GroupTasks {
                    index,
                    group,
                    run,
                    blocks,
                    spans: chunks.len().div_ceil(self.span),
                    chunks,
                    first_task: task,
                    first_partial: partial,
                };
                task += blocks * self.kv_heads * tasks.spans;
                if tasks.split() {
                    partial += group.len() * self.params.heads * tasks.chunks.len();
                }
                tasks
            })
    }

    /// Number of tasks.
    pub(super) fn count(&self) -> usize {
        self.groups().last().map_or(0, |group| {
            group.first_task + group.blocks * self.kv_heads * group.spans
        })
    }

    /// Number of tasks that [`Self::finish`] takes: one for each head of the rows whose chunks were split.
    pub(super) fn split_count(&self) -> usize {
        if self.groups().any(|group| group.split()) {
            self.plan.positions.len()
        } else {
            0
        }
    }

    /// Floats of one partial result.
    fn partial_len(&self) -> usize {
        self.head_dim + 2
    }

    /// Floats that all partial results take.
    pub(super) fn partial_floats(&self) -> usize {
        self.groups().last().map_or(0, |group| {
            let own = if group.split() {
                group.group.len() * self.params.heads * group.chunks.len()
            } else {
                0
            };
            (group.first_partial + own) * self.partial_len()
        })
    }

    /// Place of a split query's partial result.
    fn partial(
        &self,
        tasks: &GroupTasks<'_>,
        row: usize,
        head: usize,
        chunk: usize,
    ) -> Range<usize> {
        let query = row * self.params.heads + head;
        let at = tasks.first_partial + query * tasks.chunks.len() + chunk - tasks.chunks.start;
        at * self.partial_len()..(at + 1) * self.partial_len()
    }

    /// Place of a query, and of its result: `row` of the batch.
    fn place(&self, row: usize, head: usize) -> Range<usize> {
        let at = (row * self.params.heads + head) * self.head_dim;
        at..at + self.head_dim
    }

    fn block(&self, task: usize) -> Block<'a> {
        let tasks = self
            .groups()
            .take_while(|group| group.first_task <= task)
            .last()
            .expect("there are as many tasks as were counted");
        let rest = task - tasks.first_task;
        let (span, rest) = (rest % tasks.spans, rest / tasks.spans);
        let (kv_head, block) = (rest % self.kv_heads, rest / self.kv_heads);
        let per_run = tasks.run.div_ceil(QUERIES);
        let run = block / per_run * tasks.run;
        let first = run + block % per_run * QUERIES;
        Block {
            queries: first..(first + QUERIES).min(run + tasks.run),
            kv_head,
            span,
            tasks,
        }
    }

    /// Computes a task.
    pub(super) fn run(&self, isa: Isa, task: usize, sink: &Sink<'_>) {
        isa.run(Attend {
            tasks: self,
            block: self.block(task),
            sink,
        });
    }

    /// Folds the partial results of a row, where it has some.
    pub(super) fn finish(&self, isa: Isa, row: usize, sink: &Sink<'_>) {
        let group = self.groups().find(|group| group.group.rows.contains(&row));
        if let Some(group) = group.filter(GroupTasks::split) {
            isa.run(Fold {
                tasks: self,
                group,
                row,
                sink,
            });
        }
    }
}

/// Attends to the chunks of a block's span.
struct Attend<'a, 'b> {
    tasks: &'a Tasks<'b>,
    block: Block<'b>,
    sink: &'a Sink<'a>,
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
            let ancestors = &group.ancestors[queries.start / shared];
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
struct Fold<'a, 'b> {
    tasks: &'a Tasks<'b>,
    group: GroupTasks<'b>,
    row: usize,
    sink: &'a Sink<'a>,
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
