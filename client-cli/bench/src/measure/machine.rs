//! Circumstances: the machine and the pair.

use tandem_client::v1::ModelInfo;

use super::fleet::Fleet;
use crate::BenchError;
use crate::method::Method;
use crate::report::{Machine, Model, Pair};

/// Describes the daemon's version, the pair, and the machine's memory in bytes.
pub(super) async fn describe(
    fleet: &mut Fleet<'_>,
    methods: &[Method],
) -> Result<(String, Pair, u64), BenchError> {
    let mut pair = Pair {
        usual: fleet.is_private().then(|| fleet.usual()),
        ..Pair::default()
    };
    let (mut version, mut physical) = (String::new(), 0);
    for method in methods {
        let client = fleet.shared(*method).await?;
        let (status, told) = fleet.status(&client).await?;
        let info = told.info.unwrap_or_default();
        let memory = status.memory.unwrap_or_default();
        (version, physical) = (status.server_version, memory.physical);
        pair.backend = status.backend;
        pair.batch_invariant = status.batch_invariant;
        pair.budget_bytes = memory.budget;
        pair.target = info.target.as_ref().map(model).unwrap_or_default();
        let draft = info.draft.as_ref().map(model);
        if info.exit_layer > 0 {
            pair.exit_layer = info.exit_layer;
            pair.exit_adapter = draft;
        } else if draft.is_some() {
            pair.draft = draft;
        }
    }
    Ok((version, pair, physical))
}

fn model(info: &ModelInfo) -> Model {
    let source = info.source.rsplit(['/', ':']).next().unwrap_or_default();
    Model {
        name: if info.name.is_empty() {
            source.to_owned()
        } else {
            info.name.clone()
        },
        quantization: info.quantization.clone(),
        parameters: info.parameters,
        weight_bytes: info.weight_bytes,
    }
}

/// Describes this machine.
pub(super) fn machine(memory_bytes: u64) -> Machine {
    Machine {
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        processor: processor().unwrap_or_else(|| "unknown processor".to_owned()),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes,
    }
}

#[cfg(target_os = "linux")]
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn processor() -> Option<String> {
    let output = std::process::Command::new("/usr/sbin/sysctl")
        .args(["-n", "machdep.cpu.brand_string"])
        .output()
        .ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    (!name.trim().is_empty()).then(|| name.trim().to_owned())
}
