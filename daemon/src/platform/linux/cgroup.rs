//! The process's control group: the kernel's `Documentation/admin-guide/cgroup-v2.rst`, "Memory Interface Files".

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::platform::Pressure;

/// Where control groups v2 are mounted by convention.
const ROOT: &str = "/sys/fs/cgroup";
/// Share of the limit in percent from which memory that the group holds is near it.
const NEAR_PERCENT: u64 = 90;

/// A control group of version 2.
#[derive(Clone, Debug)]
pub(super) struct Group {
    root: PathBuf,
    directory: PathBuf,
}

/// Counts of `memory.events`, since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// How often usage went over `memory.high`, and the group was slowed down to reclaim.
    high: u64,
    /// How often usage was about to go over `memory.max`.
    max: u64,
    /// How often that could not be helped by reclaiming.
    oom: u64,
}

impl Group {
    /// Returns the group of this process; `None` where it is in none of version 2.
    pub(super) fn own() -> Option<Self> {
        Self::find(
            Path::new(ROOT),
            &fs::read_to_string("/proc/self/cgroup").ok()?,
        )
    }

    pub(super) fn find(root: &Path, proc_self_cgroup: &str) -> Option<Self> {
        let path = proc_self_cgroup
            .lines()
            .find_map(|line| line.strip_prefix("0::"))?;
        Some(Self {
            root: root.to_owned(),
            directory: root.join(path.trim_start_matches('/')),
        })
    }

    /// Returns the smallest `memory.max` or `memory.high` of the group and those around it, in bytes.
    pub(super) fn limit(&self) -> Option<u64> {
        self.directory
            .ancestors()
            .take_while(|directory| directory.starts_with(&self.root))
            .flat_map(|directory| ["memory.max", "memory.high"].map(|name| directory.join(name)))
            .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
            .min()
    }

    /// Returns where the stalls of the group's tasks are told.
    pub(super) fn pressure_file(&self) -> PathBuf {
        self.directory.join("memory.pressure")
    }

    /// Returns where [`Events`] are; polled for POLLPRI it tells of each change, once it was read.
    pub(super) fn events_file(&self) -> PathBuf {
        self.directory.join("memory.events")
    }

    /// Says what a change of the counts from `before` to `now` means. Reading files touches a limit all the time, and
    /// costs nobody anything, so a limit that was only touched counts where memory in use is near it.
    pub(super) fn level(&self, before: Events, now: Events) -> Pressure {
        let touched = now.high > before.high || now.max > before.max;
        if now.oom > before.oom {
            Pressure::Critical
        } else if touched && self.is_near_limit().unwrap_or(true) {
            Pressure::Warn
        } else {
            Pressure::Normal
        }
    }

    /// Says whether memory in use is near the limit; `None` where there is no limit, or the kernel does not say.
    pub(super) fn is_near_limit(&self) -> Option<bool> {
        let (used, limit) = (self.used().ok()?, self.limit()?);
        Some(used / (limit / 100).max(1) >= NEAR_PERCENT)
    }

    /// Returns `memory.current` without what has not been used for long, in bytes.
    fn used(&self) -> io::Result<u64> {
        let read = |name| fs::read_to_string(self.directory.join(name));
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidData);
        let current: u64 = read("memory.current")?.trim().parse().map_err(invalid)?;
        let idle = count(&read("memory.stat")?, "inactive_file");
        Ok(current.saturating_sub(idle))
    }
}

impl Events {
    pub(super) fn parse(text: &str) -> Self {
        Self {
            high: count(text, "high"),
            max: count(text, "max"),
            oom: count(text, "oom"),
        }
    }
}

/// Returns the number in the line `name number`; 0 where there is none.
fn count(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inner(root: &Path) -> Group {
        let group = Group::find(root, "1:cpu:/\n0::/user.slice/tandem.service\n").unwrap();
        fs::create_dir_all(&group.directory).unwrap();
        group
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let group = inner(root.path());
        assert_eq!(group.limit(), None);
        fs::write(group.directory.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("user.slice/memory.max"), "1000000\n").unwrap();
        assert_eq!(group.limit(), Some(1_000_000));
        fs::write(group.directory.join("memory.high"), "500000\n").unwrap();
        assert_eq!(group.limit(), Some(500_000));
        assert!(Group::find(root.path(), "1:memory:/v1-only\n").is_none());
    }

    #[test]
    fn a_touched_limit_counts_where_memory_in_use_is_near_it() {
        let root = tempfile::tempdir().unwrap();
        let group = inner(root.path());
        let write = |name, text| fs::write(group.directory.join(name), text).unwrap();
        write("memory.high", "1000000\n");
        write("memory.current", "990000\n");
        write("memory.stat", "anon 40000\ninactive_file 900000\n");
        let before = Events::parse("low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n");
        let high = Events::parse("low 0\nhigh 4\nmax 0\noom 0\noom_kill 0\n");
        assert_eq!(
            group.level(before, high),
            Pressure::Normal,
            "files, read once"
        );
        write("memory.stat", "anon 940000\ninactive_file 10000\n");
        assert_eq!(group.level(before, high), Pressure::Warn);
        assert_eq!(group.level(high, high), Pressure::Normal, "nothing new");
        let oom = Events::parse("low 0\nhigh 4\nmax 9\noom 1\noom_kill 0\n");
        assert_eq!(group.level(high, oom), Pressure::Critical);
    }
}
