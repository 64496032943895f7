//! What Linux says about a process.

use std::fs;
use std::time::Duration;

/// CPU time that the process has used so far, in user and kernel mode together, of all its threads; in steps of 10 ms
/// on usual kernels.
///
/// # Panics
/// When the process does not exist.
#[must_use]
pub fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process exists");
    // The command's name, in parentheses, may hold spaces; user and system time are fields 14 and 15, in ticks.
    let (_, fields) = stat
        .rsplit_once(") ")
        .expect("the name ends with a parenthesis");
    let ticks: u64 = fields
        .split(' ')
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

/// Memory that the process has written to and shares with nobody, in bytes.
///
/// # Panics
/// When the process does not exist.
#[must_use]
pub fn private_dirty_bytes(pid: u32) -> u64 {
    field_bytes(pid, "smaps_rollup", "Private_Dirty:")
}

/// Address space that the process has, in bytes.
///
/// # Panics
/// When the process does not exist.
#[must_use]
pub fn address_space_bytes(pid: u32) -> u64 {
    field_bytes(pid, "status", "VmSize:")
}

/// Reads `Name:   123 kB` in a file of the process as bytes.
fn field_bytes(pid: u32, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the process exists");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("the field exists");
    let kib: u64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib * 1024
}
