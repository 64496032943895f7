//! Linux, through procfs and control groups v2.

mod cgroup;
mod cores;
mod inherit;
mod meminfo;
mod recent;
mod space;
mod trigger;
mod watch;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use super::{KeepAwake, OnPressure, Platform, Pressure, PressureWatch, poll, psi};
use cgroup::Group;
use space::Space;
use watch::Source;

/// Stalls of the whole machine; a control group has its own in `memory.pressure`.
const STALLS: &str = "/proc/pressure/memory";
/// How often to look where nothing tells: seldom, because an idle daemon is to cost nothing.
const POLL: Duration = Duration::from_secs(10);
/// How long a stall counts: two windows of a trigger, with a margin.
const HOLD: Duration = Duration::from_secs(5);

/// Reads `/proc` and `/sys`.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Platform for Linux {
    fn footprint(&self) -> io::Result<u64> {
        // proc(5): the sums of /proc/PID/smaps.
        let text = fs::read_to_string("/proc/self/smaps_rollup")?;
        let swapped = meminfo::kib_field(&text, "Swap").unwrap_or(0);
        Ok(meminfo::kib_field(&text, "Private_Dirty")? + swapped)
    }

    fn physical_memory(&self) -> io::Result<u64> {
        let text = fs::read_to_string("/proc/meminfo")?;
        let total = meminfo::kib_field(&text, "MemTotal")?;
        let limit = Group::own().and_then(|group| group.limit());
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
        // Kernels without pressure stall information, or where it is turned off, still say what is available.
        let machine = psi::level(Path::new(STALLS))
            .map(|stalls| Space::Machine.confirm(stalls))
            .or_else(|_| meminfo::level())?;
        let group = Group::own().and_then(|group| {
            let stalls = psi::level(&group.pressure_file()).ok()?;
            Some(Space::Group(group).confirm(stalls))
        });
        Ok(machine.max(group.unwrap_or_default()))
    }

    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch> {
        let sources = sources(Path::new(STALLS), Group::own());
        if sources.iter().any(Source::is_trigger) {
            return watch::watch(sources, HOLD, on_change);
        }
        tracing::debug!("the kernel tells no memory stalls by itself; looking now and then");
        poll::watch(POLL, || Self.pressure(), on_change)
    }

    #[expect(unsafe_code, reason = "malloc_trim is a C function")]
    fn give_back(&self) {
        // Other C libraries give back by themselves.
        #[cfg(target_env = "gnu")]
        // SAFETY: malloc_trim(3) is safe to call from any thread at any time ("MT-Safe"); it only releases free memory.
        unsafe {
            libc::malloc_trim(0);
        }
    }

    fn keep_awake(&self) -> KeepAwake {
        // Whether and when an idle machine sleeps is the desktop's decision here, and mostly it does not.
        KeepAwake::none()
    }
}

/// Limits the arenas of the C library's allocator, where it has any.
#[expect(unsafe_code, reason = "mallopt is a C function")]
pub(super) fn keep_memory_together() {
    // One for what goes on while another is busy with a load. Decoding allocates nothing.
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes any value for this parameter, and is thread-safe but for its first call ("init" in
    // attributes(7)), which comes before there are other threads.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Takes the listening sockets that systemd has for this process under `name`; none where it has none.
pub(super) fn inherited_sockets(name: &str) -> io::Result<Vec<OwnedFd>> {
    inherit::sockets(name)
}

/// Opens whatever tells of a shortage by itself: stalls of the machine, stalls of our group, and our group's limits.
fn sources(machine: &Path, group: Option<Group>) -> Vec<Source> {
    let mut sources = Source::stalls(machine, &Space::Machine);
    if let Some(group) = group {
        let space = Space::Group(group.clone());
        sources.extend(Source::stalls(&group.pressure_file(), &space));
        sources.extend(Source::limits(group));
    }
    sources
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
    fn every_kernel_says_something_and_can_be_watched() {
        Linux.pressure().unwrap();
        let watch = Linux.watch_pressure(Box::new(|_| {})).unwrap();
        drop(watch);
        drop(Linux.keep_awake());
    }

    #[test]
    fn what_is_not_there_is_no_source() {
        let empty = tempfile::tempdir().unwrap();
        let group = Group::find(empty.path(), "0::/");
        assert_eq!(sources(&empty.path().join("memory"), group).len(), 0);
    }
}
