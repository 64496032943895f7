//! The machine: system, processor, memory, and how fast its cores read it.

use std::num::NonZeroUsize;

use tandem_model::check::Isa;

use super::{Finding, bandwidth, error, of};
use crate::config::format_bytes;
use crate::platform::Platform;

const SECTION: &str = "machine";

pub(super) fn check(platform: &dyn Platform, threads: NonZeroUsize) -> Vec<Finding> {
    let arch = std::env::consts::ARCH;
    let system = system();
    vec![
        of(SECTION, "system")
            .ok(format!("{system}, {arch}"))
            .value("system", system)
            .value("architecture", arch),
        processor(platform, threads),
        instructions(),
        memory(platform),
        bandwidth::check(threads),
    ]
}

fn processor(platform: &dyn Platform, threads: NonZeroUsize) -> Finding {
    let name = processor_name().unwrap_or_else(|| "a processor without a name".to_owned());
    let logical = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let cores = platform.performance_cores();
    let told = match cores {
        Some(1) => "1 performance core".to_owned(),
        Some(cores) => format!("{cores} performance cores"),
        None => "performance cores unknown".to_owned(),
    };
    of(SECTION, "processor")
        .ok(format!(
            "{name}; {told}, {logical} logical in all; Tandem computes on {threads}"
        ))
        .value("processor", name)
        .value("performance_cores", cores)
        .value("logical_cores", logical)
        .value("threads", threads.get())
}

fn instructions() -> Finding {
    let sets = Isa::available();
    let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
    let best = names.last().copied().unwrap_or("portable");
    let finding = of(SECTION, "instructions");
    let finding = if sets.len() > 1 {
        finding.ok(format!(
            "the CPU kernels use {best} (of {})",
            names.join(", ")
        ))
    } else {
        finding
            .warning("the CPU kernels use portable code, which is several times slower")
            .advise("AVX2 with FMA and F16C, or Arm's dot products, would be used; a virtual machine may hide them")
    };
    finding.value("used", best).value("available", names)
}

fn memory(platform: &dyn Platform) -> Finding {
    match platform.physical_memory() {
        Ok(bytes) => of(SECTION, "memory")
            .ok(format!(
                "{} that this process could have",
                format_bytes(bytes)
            ))
            .value("physical_bytes", bytes),
        Err(problem) => of(SECTION, "memory")
            .failed(format!(
                "the system does not say how much there is: {}",
                error(&problem)
            ))
            .advise("the daemon does not start without; on Linux, /proc has to be mounted"),
    }
}

#[cfg(target_os = "linux")]
fn system() -> String {
    let release = rustix::system::uname();
    let kernel = format!("Linux {}", release.release().to_string_lossy());
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    match name.map(|name| name.trim_matches('"')) {
        Some(name) => format!("{name} ({kernel})"),
        None => kernel,
    }
}

#[cfg(not(target_os = "linux"))]
fn system() -> String {
    match told_by("/usr/bin/sw_vers", &["-productVersion"]) {
        Some(version) => format!("macOS {version}"),
        None => std::env::consts::OS.to_owned(),
    }
}

#[cfg(target_os = "linux")]
fn processor_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    // Arm has no name there, but numbers of maker and part.
    ["model name", "Model", "CPU part"]
        .into_iter()
        .find_map(|key| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            let value = line.split_once(':')?.1.trim();
            (!value.is_empty()).then(|| value.to_owned())
        })
}

#[cfg(not(target_os = "linux"))]
fn processor_name() -> Option<String> {
    told_by("/usr/sbin/sysctl", &["-n", "machdep.cpu.brand_string"])
}

#[cfg(not(target_os = "linux"))]
fn told_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = std::process::Command::new(program)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;
    use crate::platform::{FakePlatform, native};

    #[test]
    fn this_machine_is_described() {
        let findings = check(&*native(), NonZeroUsize::MIN);
        assert!(
            findings.iter().all(|finding| finding.mark < Mark::Failed),
            "{findings:?}"
        );
        let value = |check: &str, name| {
            let finding = findings.iter().find(|finding| finding.check == check);
            finding.unwrap().values[name].clone()
        };
        assert!(value("memory", "physical_bytes").as_u64().unwrap() > 64 << 20);
        assert!(value("bandwidth", "gigabytes_per_second").as_f64().unwrap() > 0.0);
        assert!(!value("system", "system").as_str().unwrap().is_empty());
    }

    #[test]
    fn cores_that_nobody_counts_are_unknown() {
        let finding = processor(&FakePlatform::new(1, 2), NonZeroUsize::MIN);
        assert!(finding.message.contains("unknown"), "{}", finding.message);
        assert!(finding.values["performance_cores"].is_null());
    }
}
