//! Which rows of a batch belong together, where they go in the caches, and what they see.

use std::ops::Range;

/// Rows of one sequence, contiguous in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rows of the batch.
    pub rows: Range<usize>,
    /// Positions that the sequence's cache holds for good; the rows hang under these.
    pub base: usize,
    /// Rows of the same tree that earlier batches have stored from `base` on; row `rows.start + i` is stored at
    /// `base + first + i`.
    pub first: usize,
    /// Where the lines of a tree begin; `None`: every row continues the one before it.
    tree: Option<usize>,
}

impl Group {
    /// Whether every row of the tree continues the one before it: row `i` sees `0..=first + i`.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        self.tree.is_none()
    }

    /// Rows in the group.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Where the group's row `row` is stored.
    #[must_use]
    pub fn place(&self, row: usize) -> usize {
        self.base + self.first + row
    }

    /// Whether the group has no row in this batch.
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
        self.push_rest(base, parents, 0);
    }

    /// Appends as a group the rows from `first` on of the tree that `parents` describes whole, as
    /// [`Self::push_group`] takes it; the rows before are stored already.
    ///
    /// # Panics
    /// If a parent does not precede its child.
    pub fn push_rest<P>(&mut self, base: usize, parents: P, first: usize)
    where
        P: IntoIterator<Item = Option<usize>, IntoIter: Clone>,
    {
        let parents = parents.into_iter();
        let start = self.positions.len();
        let mut rows = parents.clone().enumerate();
        let tree = if rows.all(|(row, parent)| parent == row.checked_sub(1)) {
            self.positions
                .extend(parents.enumerate().skip(first).map(|(row, _)| base + row));
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
                if row >= first {
                    self.positions.push(base + self.ancestors.len() - line - 1);
                }
            }
            Some(tree)
        };
        self.groups.push(Group {
            rows: start..self.positions.len(),
            base,
            first,
            tree,
        });
    }

    /// The rows of the tree that the group's row `row` sees, ascending, itself last; nothing for a chain.
    ///
    /// # Panics
    /// If the group has fewer rows.
    #[must_use]
    pub fn ancestors(&self, group: &Group, row: usize) -> &[usize] {
        match group.tree {
            Some(tree) => &self.ancestors[self.lines[tree + group.first + row].clone()],
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

    #[test]
    fn the_rest_of_a_tree_sees_what_was_stored_before() {
        let parents = [None, Some(0), Some(0), Some(2)];
        let mut plan = RowPlan::default();
        plan.push_rest(5, parents, 2);
        plan.push_rest(7, [None, Some(0), Some(1)], 2);
        plan.push_rest(9, [None], 1);
        assert_eq!(plan.positions, [6, 7, 9]);
        let [tree, chain, none] = &plan.groups[..] else {
            panic!("three groups");
        };
        assert_eq!(plan.ancestors(tree, 0), [0, 2]);
        assert_eq!(plan.ancestors(tree, 1), [0, 2, 3]);
        assert_eq!([tree.place(0), tree.place(1), chain.place(0)], [7, 8, 9]);
        assert!(chain.is_chain() && none.is_empty());
    }
}
