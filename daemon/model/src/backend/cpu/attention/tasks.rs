//! How the attention of a batch is cut into tasks: up to sixteen queries that share a key head, over all chunks that
//! they see or, where that leaves threads without work, over a span of them whose results are folded afterwards.

use std::ops::Range;

use super::super::CpuBackend;
use super::{CHUNK, Caches};
use crate::backend::{AttentionParams, Group, RowPlan};

/// Queries of a task: each chunk is then read once into the nearest cache for all of them.
pub(super) const QUERIES: usize = 16;
/// Tasks per thread that even out the threads' ends.
const TASKS_PER_THREAD: usize = 4;

/// The attention of a batch.
pub(super) struct Tasks<'a> {
    pub(super) params: &'a AttentionParams<'a, CpuBackend>,
    pub(super) queries: &'a [f32],
    pub(super) plan: &'a RowPlan,
    pub(super) caches: Caches<'a>,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    /// Chunks of a span.
    pub(super) span: usize,
}

/// The tasks of one group, and what precedes them.
pub(super) struct GroupTasks<'a> {
    pub(super) index: usize,
    pub(super) group: &'a Group,
    /// Queries per key head that lie together: all of a chain's, one row's of a tree.
    run: usize,
    /// Blocks of queries per key head.
    blocks: usize,
    /// Chunks that some query sees.
    pub(super) chunks: Range<usize>,
    spans: usize,
    first_task: usize,
    /// Where its partial results begin, in queries times chunks.
    first_partial: usize,
}

impl GroupTasks<'_> {
    pub(super) fn split(&self) -> bool {
        self.spans > 1
    }
}

/// Up to sixteen queries of one key head.
pub(super) struct Block<'a> {
    pub(super) tasks: GroupTasks<'a>,
    pub(super) kv_head: usize,
    /// Indices among the group's queries of this key head, row by row.
    pub(super) queries: Range<usize>,
    pub(super) span: usize,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(
        params: &'a AttentionParams<'a, CpuBackend>,
        queries: &'a [f32],
        plan: &'a RowPlan,
        caches: Caches<'a>,
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
    pub(super) fn shared(&self) -> usize {
        self.params.heads / self.kv_heads
    }

    /// The first position that a row sees.
    pub(super) fn oldest(&self, position: usize) -> usize {
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
                let chain = group.is_chain() && !group.is_empty();
                let run = self.shared() * if chain { group.len() } else { 1 };
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
    pub(super) fn partial(
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
    pub(super) fn place(&self, row: usize, head: usize) -> Range<usize> {
        let at = (row * self.params.heads + head) * self.head_dim;
        at..at + self.head_dim
    }

    pub(super) fn block(&self, task: usize) -> Block<'a> {
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

    /// The group of a row, where its chunks were split.
    pub(super) fn split_group(&self, row: usize) -> Option<GroupTasks<'a>> {
        let group = self.groups().find(|group| group.group.rows.contains(&row));
        group.filter(GroupTasks::split)
    }
}
