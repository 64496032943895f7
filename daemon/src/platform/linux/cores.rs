//! How many cores compute best, from the topology under `/sys/devices/system/cpu`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Share of the fastest core's capacity from which a core counts as fast.
const FAST: f64 = 0.8;

/// Returns how many physical performance cores there are among the CPUs of `allowed`, a list such as `0-3,8`: threads
/// of one core count once, and slow cores beside fast ones do not. `None` where the system does not say.
pub(super) fn performance_cores(sys: &Path, allowed: &str) -> Option<usize> {
    let read = |path: &str| fs::read_to_string(sys.join(path)).ok();
    let mut cpus = cpu_list(allowed)?;
    // Intel's hybrids list their performance CPUs; Arm's machines rate every CPU.
    let fast = read("cpu_core/cpus").and_then(|list| cpu_list(&list));
    if let Some(fast) = fast {
        let both: BTreeSet<usize> = cpus.intersection(&fast).copied().collect();
        if !both.is_empty() {
            cpus = both;
        }
    }
    let capacity = |cpu: usize| -> Option<f64> {
        let text = read(&format!("system/cpu/cpu{cpu}/cpu_capacity"))?;
        text.trim().parse().ok()
    };
    let most = cpus
        .iter()
        .filter_map(|cpu| capacity(*cpu))
        .fold(0.0, f64::max);
    let is_fast = |cpu: usize| capacity(cpu).is_none_or(|capacity| capacity >= FAST * most);
    let cores: Option<BTreeSet<String>> = cpus
        .into_iter()
        .filter(|cpu| is_fast(*cpu))
        .map(|cpu| {
            // The older name is the same list.
            let topology = format!("system/cpu/cpu{cpu}/topology");
            read(&format!("{topology}/core_cpus_list"))
                .or_else(|| read(&format!("{topology}/thread_siblings_list")))
        })
        .collect();
    cores.map(|cores| cores.len()).filter(|count| *count > 0)
}

/// Reads a list of CPUs such as `0-3,8`.
fn cpu_list(text: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        cpus.extend(number(first)?..=number(last)?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a machine: for each CPU the list of its core's CPUs, and its capacity where rated.
    fn machine(cpus: &[(&str, Option<u32>)]) -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        for (cpu, (core, capacity)) in cpus.iter().enumerate() {
            let cpu = sys.path().join(format!("system/cpu/cpu{cpu}"));
            fs::create_dir_all(cpu.join("topology")).unwrap();
            fs::write(cpu.join("topology/core_cpus_list"), format!("{core}\n")).unwrap();
            if let Some(capacity) = capacity {
                fs::write(cpu.join("cpu_capacity"), format!("{capacity}\n")).unwrap();
            }
        }
        sys
    }

    #[test]
    fn threads_of_a_core_count_once() {
        let sys = machine(&[("0,2", None), ("1,3", None), ("0,2", None), ("1,3", None)]);
        assert_eq!(performance_cores(sys.path(), "0-3\n"), Some(2));
        assert_eq!(
            performance_cores(sys.path(), "0,2"),
            Some(1),
            "one core allowed"
        );
        assert_eq!(
            performance_cores(sys.path(), "0-4"),
            None,
            "CPU 4 is not there"
        );
    }

    #[test]
    fn slow_cores_beside_fast_ones_do_not_count() {
        let arm = machine(&[
            ("0", Some(446)),
            ("1", Some(446)),
            ("2", Some(1024)),
            ("3", Some(950)),
        ]);
        assert_eq!(performance_cores(arm.path(), "0-3"), Some(2));
        assert_eq!(
            performance_cores(arm.path(), "0-1"),
            Some(2),
            "all that is allowed"
        );

        let intel = machine(&[("0-1", None), ("0-1", None), ("2", None), ("3", None)]);
        fs::create_dir_all(intel.path().join("cpu_core")).unwrap();
        fs::write(intel.path().join("cpu_core/cpus"), "0-1\n").unwrap();
        assert_eq!(performance_cores(intel.path(), "0-3"), Some(1));
        assert_eq!(performance_cores(intel.path(), "2-3"), Some(2));
    }

    #[test]
    fn a_machine_that_says_nothing_is_not_guessed_at() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(performance_cores(empty.path(), "0-3"), None);
        assert_eq!(performance_cores(empty.path(), "any"), None);
    }
}
