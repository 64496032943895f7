//! Which rows of a batch belong together, where they go in the caches, and what they see.

use std::ops::Range;

/// Rows of one sequence, contiguous in the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rows of the batch.
    pub rows: Range<usize>,
    /// Positions that the sequence's cache holds before the step; row `rows.start + i` is stored at `base + i`.
    pub base: usize,
    /// For each row of the group the group rows it sees, ascending, itself last. Empty where the group is a chain:
    /// row `i` then sees `0..=i`.
    pub ancestors: Vec<Vec<usize>>,
}

impl Group {
    /// Whether every row continues the one before it.
    #[must_use]
    pub fn is_chain(&self) -> bool {
        self.ancestors.is_empty()
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

/// The layout of one batch of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowPlan {
    /// Position of each row in its sequence, for the rotary embedding.
    pub positions: Vec<usize>,
    /// One group per sequence, in the order of the caches handed along.
    pub groups: Vec<Group>,
}

impl RowPlan {
    /// Appends a group whose row `i` hangs under group row `parents[i]`, or under the last cached position where that
    /// is `None`. Parents precede their children.
    ///
    /// # Panics
    /// If a parent does not precede its child.
    pub fn push_group(&mut self, base: usize, parents: &[Option<usize>]) {
        let start = self.positions.len();
        let chain = parents
            .iter()
            .enumerate()
            .all(|(row, parent)| *parent == row.checked_sub(1));
        let mut ancestors: Vec<Vec<usize>> = Vec::with_capacity(parents.len());
        for (row, parent) in parents.iter().enumerate() {
            let mut line = parent.map_or_else(Vec::new, |parent| {
                assert!(parent < row, "parents precede their children");
                ancestors[parent].clone()
            });
            line.push(row);
            self.positions.push(base + line.len() - 1);
            ancestors.push(line);
        }
        if chain {
            ancestors.clear();
        }
        self.groups.push(Group {
            rows: start..start + parents.len(),
            base,
            ancestors,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_counts_on() {
        let mut plan = RowPlan::default();
        plan.push_group(5, &[None, Some(0), Some(1)]);
        assert_eq!(plan.positions, [5, 6, 7]);
        assert!(plan.groups[0].is_chain());
    }

    #[test]
    fn siblings_share_a_position_and_do_not_see_each_other() {
        let mut plan = RowPlan::default();
        plan.push_group(0, &[None]);
        plan.push_group(5, &[None, Some(0), Some(0), Some(2)]);
        assert_eq!(plan.positions, [0, 5, 6, 6, 7]);
        assert_eq!(plan.groups[1].rows, 1..5);
        assert_eq!(
            plan.groups[1].ancestors,
            [vec![0], vec![0, 1], vec![0, 2], vec![0, 2, 3]]
        );
    }
}
