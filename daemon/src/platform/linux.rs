//! Linux, through procfs and control groups v2.

mod cores;
mod psi;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{KeepAwake, OnPressure, Platform, Pressure, PressureWatch};

/// Where control groups v2 are mounted by convention.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// How often to look where nothing tells.
const POLL: Duration = Duration::from_secs(5);

/// Reads `/proc` and `/sys`.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Platform for Linux {
    fn footprint(&self) -> io::Result<u64> {
        let text = fs::read_to_string("/proc/self/smaps_rollup")?;
        Ok(kib_field(&text, "Private_Dirty")? + kib_field(&text, "Swap").unwrap_or(0))
    }

    fn physical_memory(&self) -> io::Result<u64> {
        let total = kib_field(&fs::read_to_string("/proc/meminfo")?, "MemTotal")?;
        let limit = fs::read_to_string("/proc/self/cgroup")
            .ok()
            .and_then(|text| smallest_cgroup_limit(Path::new(CGROUP_ROOT), &text));
        Ok(limit.map_or(total, |limit| limit.min(total)))
    }

    fn performance_cores(&self) -> Option<usize> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        cores::performance_cores(Path::new("/sys/devices"), allowed)
    }

    fn recommended_working_set(&self) -> Option<u64> {
        None
    }

    fn pressure(&self) -> io::Result<Pressure> {
        psi::level(Path::new(psi::SYSTEM))
    }

    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch> {
        super::poll::watch(POLL, || Linux.pressure(), on_change)
    }

    fn keep_awake(&self) -> KeepAwake {
        KeepAwake::none()
    }
}

/// Reads `Name:   123 kB` as bytes.
fn kib_field(text: &str, name: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no field {name} in kB")))
}

/// Returns the smallest `memory.max` of the process's group and the groups around it; `None`: no limit anywhere.
fn smallest_cgroup_limit(root: &Path, proc_self_cgroup: &str) -> Option<u64> {
    let path = proc_self_cgroup
        .lines()
        .find_map(|line| line.strip_prefix("0::"))?;
    let group = root.join(path.trim_start_matches('/'));
    group
        .ancestors()
        .take_while(|directory| directory.starts_with(root))
        .filter_map(|directory| {
            fs::read_to_string(directory.join("memory.max"))
                .ok()?
                .trim()
                .parse()
                .ok()
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_sane() {
        let physical = Linux.physical_memory().unwrap();
        assert!((64 << 20..1 << 50).contains(&physical), "{physical}");
        let cores = Linux.performance_cores();
        assert!(cores.is_none_or(|cores| cores > 0), "{cores:?}");
        let before = Linux.footprint().unwrap();
        let block = vec![1u8; 32 << 20];
        let after = Linux.footprint().unwrap();
        assert!(std::hint::black_box(&block).len() == 32 << 20);
        assert!(before > 0 && after < physical);
        assert!(
            after >= before + (24 << 20),
            "32 MiB written, footprint went from {before} to {after}"
        );
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("user.slice/tandem.service");
        fs::create_dir_all(&inner).unwrap();
        let group = "0::/user.slice/tandem.service\n";
        assert_eq!(smallest_cgroup_limit(root.path(), group), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("user.slice/memory.max"), "1000000\n").unwrap();
        assert_eq!(smallest_cgroup_limit(root.path(), group), Some(1_000_000));
        fs::write(inner.join("memory.max"), "500000\n").unwrap();
        assert_eq!(smallest_cgroup_limit(root.path(), group), Some(500_000));
        assert_eq!(
            smallest_cgroup_limit(root.path(), "1:memory:/v1-only\n"),
            None
        );
    }

    #[test]
    fn fields_are_whole_names() {
        assert_eq!(
            kib_field("SwapPss: 1 kB\nSwap:   2 kB\n", "Swap").unwrap(),
            2048
        );
        assert!(kib_field("Swap: many\n", "Swap").is_err());
    }
}
