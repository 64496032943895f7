//! What the daemon says about itself. Reads what others wrote down; asks no engine, so that an answer comes at once
//! whatever the engines are doing.

use std::sync::atomic::{AtomicU64, Ordering};

use tandem_engine::engine::MemoryUse;
use tandem_engine::pair::{LoadProgress, LoadStage, ModelSummary};
use tandem_engine::policy::SpeculationStats;
use tandem_proto::{API_VERSION, v1};

use crate::convert::{count, draft_methods, duration, pair_speculation, step_costs};
use crate::pair::{Pair, PairState, Readings};
use crate::phase::Phase;
use crate::record::Totals;
use crate::service::Daemon;

pub(crate) fn list_pairs(daemon: &Daemon) -> v1::ListPairsResponse {
    let pairs = daemon
        .pairs
        .iter()
        .map(|pair| info(daemon, pair, &pair.readings()))
        .collect();
    v1::ListPairsResponse { pairs }
}

pub(crate) fn status(daemon: &Daemon) -> v1::StatusResponse {
    let mut used = MemoryUse::default();
    let mut speculation = SpeculationStats::default();
    let mut pairs = Vec::with_capacity(daemon.pairs.len());
    for pair in &daemon.pairs {
        let readings = pair.readings();
        used = sum(used, readings.memory);
        speculation.merge(&readings.speculation);
        pairs.push(pair_status(daemon, pair, &readings));
    }
    let default = daemon
        .pairs
        .iter()
        .find(|pair| pair.name == daemon.config.default_pair);
    let report = default.and_then(|pair| match pair.state() {
        PairState::Warm(warm) => Some((warm.report.backend, warm.report.batch_invariant)),
        PairState::Loading | PairState::Failed(_) => None,
    });
    let (backend, batch_invariant) = report.unwrap_or_default();
    v1::StatusResponse {
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        api_version: API_VERSION,
        pid: std::process::id(),
        uptime: Some(duration(daemon.started.elapsed())),
        socket_path: daemon.socket.display().to_string(),
        config_path: daemon
            .config
            .path
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string()),
        backend: backend.to_owned(),
        batch_invariant,
        memory: Some(v1::MemoryStatus {
            footprint: reading("footprint", daemon.platform.footprint()),
            budget: daemon.budget,
            physical: reading("physical memory", daemon.platform.physical_memory()),
            ..memory(used)
        }),
        pairs,
        totals: Some(totals(&daemon.totals)),
        speculation: Some(pair_speculation(&speculation)),
    }
}

/// A reading that fails is reported as 0 and logged: the rest of the status is worth having without it.
fn reading(what: &str, result: std::io::Result<u64>) -> u64 {
    result.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the {what}");
        0
    })
}

fn pair_status(daemon: &Daemon, pair: &Pair, readings: &Readings) -> v1::PairStatus {
    // Those that wait for the pair to load hold room and are not in the engine yet.
    let outside = pair
        .reserved()
        .saturating_sub(readings.running + readings.waiting);
    v1::PairStatus {
        info: Some(info(daemon, pair, readings)),
        running: count(readings.running),
        waiting: count(readings.waiting + outside),
        queue_capacity: count(daemon.config.server.max_queue),
        memory: Some(memory(readings.memory)),
        speculation: Some(pair_speculation(&readings.speculation)),
        step_costs: step_costs(&readings.step_costs),
    }
}

fn info(daemon: &Daemon, pair: &Pair, readings: &Readings) -> v1::PairInfo {
    let source = |model: &tandem_models::ModelRef| model.to_string();
    let mut info = v1::PairInfo {
        name: pair.name.clone(),
        is_default: pair.name == daemon.config.default_pair,
        target: Some(v1::ModelInfo {
            source: source(&pair.config.target),
            ..Default::default()
        }),
        draft: pair.config.draft.file().map(|draft| v1::ModelInfo {
            source: source(draft),
            ..Default::default()
        }),
        draft_methods: draft_methods(daemon.drafters(pair, readings.speculation_off.is_none())),
        speculation_off_reason: readings.speculation_off.clone().unwrap_or_default(),
        ..Default::default()
    };
    let residency = match pair.state() {
        PairState::Loading => {
            info.load_progress = pair.load_progress().map(load_progress);
            v1::Residency::Loading
        }
        PairState::Failed(failure) => {
            info.error = failure.error.to_string();
            v1::Residency::Cold
        }
        PairState::Warm(warm) => {
            describe(&mut info.target, &warm.report.target);
            if let Some(draft) = &warm.report.draft {
                describe(&mut info.draft, draft);
            }
            info.exit_layer = warm.report.exit_layer.map_or(0, count);
            info.context_length = count(warm.report.context_length);
            info.warnings.clone_from(&warm.report.warnings);
            if daemon.lifecycle.phase() == Phase::Serving {
                v1::Residency::Warm
            } else {
                v1::Residency::Draining
            }
        }
    };
    info.set_residency(residency);
    info
}

/// Adds what the file says to what the configuration says.
fn describe(info: &mut Option<v1::ModelInfo>, summary: &ModelSummary) {
    if let Some(info) = info {
        info.name.clone_from(&summary.name);
        info.architecture.clone_from(&summary.architecture);
        info.quantization.clone_from(&summary.quantization);
        info.parameters = summary.parameters;
        info.weight_bytes = summary.weight_bytes;
        info.vocabulary_size = count(summary.vocabulary_size);
        info.mapped_bytes = summary.mapped_bytes;
    }
}

fn load_progress(progress: LoadProgress) -> v1::LoadProgress {
    let stage = match progress.stage {
        LoadStage::Identifying => v1::LoadStage::Identifying,
        LoadStage::Waiting => v1::LoadStage::Waiting,
        LoadStage::Preparing => v1::LoadStage::Preparing,
        LoadStage::Checking => v1::LoadStage::Checking,
        LoadStage::Reading => v1::LoadStage::Reading,
    };
    v1::LoadProgress {
        model: progress.role.to_owned(),
        stage: stage.into(),
        done_bytes: progress.done_bytes,
        total_bytes: progress.total_bytes,
    }
}

/// Fills what engines hold; the process's own readings and the budget are left 0.
fn memory(used: MemoryUse) -> v1::MemoryStatus {
    v1::MemoryStatus {
        target_weights: used.target_weights,
        draft_weights: used.draft_weights,
        mapped_weights: used.mapped_weights,
        target_kv: used.target_kv,
        draft_kv: used.draft_kv,
        ..Default::default()
    }
}

fn sum(a: MemoryUse, b: MemoryUse) -> MemoryUse {
    MemoryUse {
        target_weights: a.target_weights + b.target_weights,
        draft_weights: a.draft_weights + b.draft_weights,
        mapped_weights: a.mapped_weights + b.mapped_weights,
        target_kv: a.target_kv + b.target_kv,
        draft_kv: a.draft_kv + b.draft_kv,
    }
}

fn totals(totals: &Totals) -> v1::RequestTotals {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    v1::RequestTotals {
        started: read(&totals.started),
        completed: read(&totals.completed),
        cancelled: read(&totals.cancelled),
        failed: read(&totals.failed),
        rejected: read(&totals.rejected),
        prompt_tokens: read(&totals.prompt_tokens),
        completion_tokens: read(&totals.completion_tokens),
        draft_tokens: read(&totals.draft_tokens),
        accepted_tokens: read(&totals.accepted_tokens),
        steps: read(&totals.steps),
    }
}
