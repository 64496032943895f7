//! The devices of this build: whether they open, and whether they compute what the reference does.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use tandem_model::check::{Comparison, FORMATS, Format, TOLERANCE, compare, model};
use tandem_model::hardware::Device;

use super::{Finding, Mark, error, of};
use crate::config::DeviceChoice;
use crate::loading::device;

const SECTION: &str = "devices";

pub(super) fn check(scratch: &Path, threads: NonZeroUsize) -> Vec<Finding> {
    let auto = device(DeviceChoice::Auto, threads);
    let mut devices = vec![Device::Cpu(threads)];
    if cfg!(feature = "metal") {
        devices.push(Device::Metal);
    }
    if cfg!(feature = "cuda") {
        devices.push(Device::Cuda);
    }
    let mut findings = vec![
        of(SECTION, "auto")
            .ok(format!("engine.device = \"auto\" is {}", name(auto)))
            .value("device", name(auto)),
    ];
    findings.extend(
        devices
            .into_iter()
            .map(|device| compare_formats(device, &FORMATS, scratch)),
    );
    findings
}

fn name(device: Device) -> &'static str {
    match device {
        Device::Cpu(_) => "cpu",
        Device::Metal => "metal",
        Device::Cuda => "cuda",
    }
}

/// Runs a small random model in each format on the device and on the reference.
fn compare_formats(device: Device, formats: &[Format], scratch: &Path) -> Finding {
    let mut found = Vec::with_capacity(formats.len());
    for &format in formats {
        let path = scratch.join("model.gguf");
        let compared = fs::write(&path, model(format))
            .map_err(|problem| format!("cannot write {}: {problem}", path.display()))
            .and_then(|()| compare(device, &path).map_err(|problem| error(&problem)));
        match compared {
            Ok(comparison) => found.push((format, comparison)),
            Err(problem) => {
                return of(SECTION, name(device))
                    .failed(format!("{format:?} weights: {problem}"))
                    .advise(match device {
                        Device::Cpu(_) => "this is a defect of Tandem: please report it with this page",
                        _ => "set engine.device = \"cpu\" until the device works, and report this page",
                    });
            }
        }
    }
    judge(name(device), &found)
}

fn judge(name: &'static str, found: &[(Format, Comparison)]) -> Finding {
    let wrong: Vec<String> = found
        .iter()
        .filter(|(_, comparison)| !comparison.is_sound())
        .map(|(format, _)| format!("{format:?}"))
        .collect();
    // NaN is larger than anything here.
    let most = |value: fn(&Comparison) -> f64| {
        let values = found.iter().map(|(format, found)| (value(found), *format));
        values.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let (error, format) = most(|found| found.error).unwrap_or((0.0, Format::F32));
    let (row_error, _) = most(|found| found.row_error).unwrap_or((0.0, Format::F32));
    let invariant = found.iter().all(|(_, found)| found.is_invariant);
    let promised = found.iter().any(|(_, found)| found.says_invariant);
    let backend = found.first().map_or(name, |(_, found)| found.backend);
    let rows = match (invariant, promised) {
        (true, _) => "rows are the same to the bit alone and beside others".to_owned(),
        (false, false) => format!(
            "not batch-invariant: a row beside others differs by up to {:.2} %",
            row_error * 100.0
        ),
        (false, true) => format!(
            "NOT batch-invariant as promised: a row beside others differs by up to {:.2} %",
            row_error * 100.0
        ),
    };
    let with = if backend == name {
        String::new()
    } else {
        format!("{backend}, ")
    };
    let seen = format!(
        "{with}{} formats, at most {:.2} % from the CPU reference ({format:?}); {rows}",
        found.len(),
        error * 100.0
    );
    let finding = if wrong.is_empty() {
        of(SECTION, name).ok(seen)
    } else {
        of(SECTION, name)
            .failed(format!("wrong results with {}; {seen}", wrong.join(", ")))
            .advise(format!(
                "errors up to {:.0} % are rounding; do not trust texts from this device, and report this page",
                TOLERANCE * 100.0
            ))
    };
    let errors: serde_json::Map<String, serde_json::Value> = found
        .iter()
        .map(|(format, found)| (format!("{format:?}"), found.error.into()))
        .collect();
    debug_assert!(finding.mark == Mark::Ok || finding.advice.is_some());
    finding
        .value("backend", backend)
        .value("batch_invariant", invariant)
        .value("relative_errors", errors)
        .value("relative_row_error", row_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Comparison = Comparison {
        backend: "some gpu",
        says_invariant: false,
        is_invariant: false,
        error: 0.01,
        row_error: 0.002,
    };

    #[test]
    fn the_cpu_is_sound_here() {
        let scratch = tempfile::tempdir().unwrap();
        let finding = compare_formats(
            Device::Cpu(NonZeroUsize::MIN),
            &[Format::F32, Format::Q4K],
            scratch.path(),
        );
        assert_eq!(finding.mark, Mark::Ok, "{finding:?}");
        assert_eq!(finding.values["batch_invariant"], true);
    }

    #[test]
    fn a_gpu_may_be_inexact_but_not_wrong() {
        let finding = judge("cuda", &[(Format::Q4_0, SOUND)]);
        assert_eq!(finding.mark, Mark::Ok);
        assert!(finding.message.contains("0.20 %"), "{}", finding.message);
        for error in [0.5, f64::NAN] {
            let wrong = Comparison { error, ..SOUND };
            let finding = judge("cuda", &[(Format::Q4_0, SOUND), (Format::Q6K, wrong)]);
            assert_eq!(finding.mark, Mark::Failed, "{finding:?}");
            assert!(
                finding.message.starts_with("wrong results with Q6K;")
                    && finding.message.contains("(Q6K)"),
                "{}",
                finding.message
            );
        }
        let says_invariant = true;
        let broken = Comparison {
            says_invariant,
            ..SOUND
        };
        assert_eq!(judge("cpu", &[(Format::F16, broken)]).mark, Mark::Failed);
    }

    #[test]
    fn a_device_that_does_not_open_fails_with_what_to_do() {
        if cfg!(feature = "cuda") {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let finding = compare_formats(Device::Cuda, &FORMATS, scratch.path());
        assert_eq!(finding.mark, Mark::Failed);
        assert!(finding.advice.unwrap().contains("engine.device"));
    }
}
