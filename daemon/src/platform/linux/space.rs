//! What stalls mean by how much room there is.
//!
//! A machine stalls for memory without being short of it: a neighbour in a container that thrashes within its own limit
//! stalls "the machine", and reading many files makes a group reclaim them all the time. Neither gains from what a daemon
//! gives up. The other way round, room does not prove that all is well: pages of mapped weights that are read in again and
//! again count as available. So stalls without scarcity count for one level less.

use super::cgroup::Group;
use super::meminfo;
use crate::platform::Pressure;

/// Whose memory it is.
#[derive(Clone, Debug)]
pub(super) enum Space {
    Machine,
    Group(Group),
}

impl Space {
    /// Returns what stalls of this level mean.
    pub(super) fn confirm(&self, stalls: Pressure) -> Pressure {
        match stalls {
            Pressure::Normal => Pressure::Normal,
            stalls if self.is_scarce() => stalls,
            Pressure::Critical => Pressure::Warn,
            Pressure::Warn => Pressure::Normal,
        }
    }

    fn is_scarce(&self) -> bool {
        match self {
            // In doubt, the kernel's word counts.
            Self::Machine => meminfo::level().map_or(true, |level| level != Pressure::Normal),
            // A group without a limit stalls because the machine does, which is told apart.
            Self::Group(group) => group.is_near_limit().unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn stalls_count_for_less_where_there_is_room() {
        let root = tempfile::tempdir().unwrap();
        let space = Space::Group(Group::find(root.path(), "0::/").unwrap());
        let all = || {
            [Pressure::Normal, Pressure::Warn, Pressure::Critical].map(|level| space.confirm(level))
        };
        let less = [Pressure::Normal, Pressure::Normal, Pressure::Warn];
        assert_eq!(all(), less, "no limit");
        let write = |name, text| fs::write(root.path().join(name), text).unwrap();
        write("memory.max", "1000000\n");
        write("memory.current", "990000\n");
        write("memory.stat", "anon 90000\ninactive_file 900000\n");
        assert_eq!(all(), less, "files, read once");
        write("memory.stat", "anon 980000\ninactive_file 10000\n");
        let as_told = [Pressure::Normal, Pressure::Warn, Pressure::Critical];
        assert_eq!(all(), as_told);
    }
}
