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

use rustix::process::{Resource, getrlimit};

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

/// Limits the arenas of the C library's allocator, and what it keeps in them, where it has any.
#[expect(unsafe_code, reason = "mallopt is a C function")]
pub(super) fn keep_memory_together() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) takes any value for these parameters, and is thread-safe but for its first call ("init" in
    // attributes(7)), which comes before there are other threads.
    unsafe {
        // One for what goes on while another is busy with a load. Decoding allocates nothing.
        libc::mallopt(libc::M_ARENA_MAX, 2);
        // Blocks of caches and weights are mapped one by one, so that they go back to the system when they are freed. By
        // itself the allocator learns to keep such blocks as soon as the first was freed, and a gap between two of them
        // is nobody's.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 256 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 512 << 10);
    }
}

/// Returns how many bytes the limits on address space and data leave this process.
pub(super) fn room() -> Option<u64> {
    let (space, data) = (
        getrlimit(Resource::As).current,
        getrlimit(Resource::Data).current,
    );
    if space.is_none() && data.is_none() {
        return None;
    }
    // proc(5): the fields are in pages; the first is what RLIMIT_AS counts, the sixth what RLIMIT_DATA counts, and stacks.
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: Vec<u64> = text
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let page = rustix::param::page_size() as u64;
    let left = |limit: Option<u64>, field: usize| {
        Some(limit?.saturating_sub(pages.get(field)?.saturating_mul(page)))
    };
    left(space, 0).into_iter().chain(left(data, 5)).min()
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
    fn without_limits_there_is_room_without_end() {
        let limited = [Resource::As, Resource::Data].map(|kind| getrlimit(kind).current);
        assert_eq!(room().is_none(), limited == [None, None]);
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
