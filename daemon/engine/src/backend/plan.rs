//! Which rows of a batch belong together, where they go in the caches, and what they see.

use std::ops::Range;

/// Rows of one sequence, contiguous in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rows of the batch.
    pub rows: Range<usize>,
    /// Positions that the sequence's cache holds before the step; row `rows.start + i` is stored at `base + i`.
    pub base: usize,
    /// Where the lines of a tree begin; `None`: every row continues the one before it.
    tree: Option<usize>,
}

impl Group {
    /// Whether every row continues the one before it: row `i` sees `0..=i`.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        self.tree.is_none()
    }

    /// Rows in the group.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the group has no row; it never does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// The layout of one batch of rows; its memory is used again after [`Self::clear`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPlan {
    /// Position of each row in its sequence, for the rotary embedding.
    pub positions: Vec<usize>,
    /// One group per sequence, in the order of the caches handed along.
    pub groups: Vec<Group>,
    /// For each row of each tree where what it sees lies in `ancestors`.
    lines: Vec<Range<usize>>,
    ancestors: Vec<usize>,
}

impl RowPlan {
    /// Forgets all groups.
    pub fn clear(&mut self) {
        self.positions.clear();
        self.groups.clear();
        self.lines.clear();
        self.ancestors.clear();
    }

    /// Appends a group whose row `i` hangs under group row `parents[i]`, or under the last cached position where that
    /// is `None`. Parents precede their children.
    ///
    /// # Panics
    /// If a parent does not precede its child.
    pub fn push_group<P>(&mut self, base: usize, parents: P)
    where
        P: IntoIterator<Item = Option<usize>, IntoIter: Clone>,
    {
        let parents = parents.into_iter();
        let start = self.positions.len();
        let mut rows = parents.clone().enumerate();
        let tree = if rows.all(|(row, parent)| parent == row.checked_sub(1)) {
            self.positions
                .extend(parents.enumerate().map(|(row, _)| base + row));
            None
        } else {
            let tree = self.lines.len();
            for (row, parent) in parents.enumerate() {
                let line = self.ancestors.len();
                if let Some(parent) = parent {
                    assert!(parent < row, "parents precede their children");
                    self.ancestors
                        .extend_from_within(self.lines[tree + parent].clone());
                }
                self.ancestors.push(row);
                self.lines.push(line..self.ancestors.len());
                self.positions.push(base + self.ancestors.len() - line - 1);
            }
            Some(tree)
        };
        self.groups.push(Group {
            rows: start..self.positions.len(),
            base,
            tree,
        });
    }

    /// The group rows that row `row` of a tree sees, ascending, itself last; nothing for a chain.
    ///
    /// # Panics
    /// If the tree has fewer rows.
    #[must_use]
    pub fn ancestors(&self, group: &Group, row: usize) -> &[usize] {
        match group.tree {
            Some(tree) => &self.ancestors[self.lines[tree + row].clone()],
            None => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_counts_on() {
        let mut plan = RowPlan::default();
        plan.push_group(5, [None, Some(0), Some(1)]);
        assert_eq!(plan.positions, [5, 6, 7]);
        assert!(plan.groups[0].is_chain());
    }

    #[test]
    fn siblings_share_a_position_and_do_not_see_each_other() {
        let mut plan = RowPlan::default();
        for _ in 0..2 {
            plan.clear();
            plan.push_group(3, [None, None]);
            plan.push_group(0, [None]);
            plan.push_group(5, [None, Some(0), Some(0), Some(2)]);
            assert_eq!(plan.positions, [3, 3, 0, 5, 6, 6, 7]);
            assert_eq!(plan.groups[2].rows, 3..7);
            let seen = |row| plan.ancestors(&plan.groups[2], row);
            assert_eq!(seen(0), [0]);
            assert_eq!(seen(1), [0, 1]);
            assert_eq!(seen(2), [0, 2]);
            assert_eq!(seen(3), [0, 2, 3]);
        }
    }
}
