//! What the daemon says about itself. Reads what others wrote down; asks no engine, so that an answer comes at once
//! whatever the engines are doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tandem_engine::engine::MemoryUse;
use tandem_model::load::ModelSummary;
use tandem_proto::{API_VERSION, v1};

use crate::convert::{
    self, count, draft_methods, duration, load_progress, memory_stage, pair_speculation, pressure,
    step_costs,
};
use crate::drafters::drafters;
use crate::phase::Phase;
use crate::record::Totals;
use crate::residency::{Pair, PairState, Readings};
use crate::service::Daemon;

pub(crate) fn list_pairs(daemon: &Daemon) -> v1::ListPairsResponse {
    let pairs = daemon.residency.pairs();
    let pairs = pairs
        .iter()
        .map(|pair| info(daemon, pair, &pair.readings()));
    v1::ListPairsResponse {
        pairs: pairs.collect(),
    }
}

pub(crate) fn status(daemon: &Daemon) -> v1::StatusResponse {
    let residency = &daemon.residency;
    let (config, pairs) = (residency.config(), residency.pairs());
    let mut used = MemoryUse::default();
    for resident in residency.residents() {
        used = sum(used, resident.readings().memory);
    }
    let default = pairs.iter().find(|pair| pair.name == config.default_pair);
    let loaded = |pair: &Arc<Pair>| {
        let state = pair.state();
        let report = &state.resident()?.report;
        Some((report.backend, report.batch_invariant))
    };
    // All pairs are on the same device.
    let report = default
        .and_then(loaded)
        .or_else(|| pairs.iter().find_map(loaded));
    let path = config.path.as_ref();
    let view = *daemon.memory.borrow();
    let platform = &residency.platform;
    v1::StatusResponse {
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        api_version: API_VERSION,
        pid: std::process::id(),
        uptime: Some(duration(daemon.started.elapsed())),
        socket_path: daemon.socket.display().to_string(),
        config_path: path.map_or_else(String::new, |path| path.display().to_string()),
        backend: report.map_or_else(String::new, |(backend, _)| backend.to_owned()),
        batch_invariant: report.is_some_and(|(_, invariant)| invariant),
        memory: Some(v1::MemoryStatus {
            footprint: reading("footprint", platform.footprint()),
            budget: residency.budget(),
            physical: reading("physical memory", platform.physical_memory()),
            ..memory(used)
        }),
        pairs: pairs
            .iter()
            .map(|pair| pair_status(daemon, pair, &pair.readings()))
            .collect(),
        totals: Some(totals(&daemon.totals)),
        speculation: Some(pair_speculation(&residency.speculation())),
        pressure: pressure(view.pressure).into(),
        memory_stage: memory_stage(view.stage).into(),
        reload: residency.last_reload().map(|last| v1::ReloadStatus {
            ago: Some(duration(last.at.elapsed())),
            error: last.error.unwrap_or_default(),
        }),
        hanging: daemon.hanging.borrow().clone().unwrap_or_default(),
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
    // What is not loaded does nothing, and what it would do is not known.
    let loaded = pair.state().resident().is_some();
    v1::PairStatus {
        info: Some(info(daemon, pair, readings)),
        running: count(readings.running),
        waiting: count(readings.waiting + outside),
        queue_capacity: count(daemon.residency.config().server.max_queue),
        memory: loaded.then(|| memory(readings.memory)),
        speculation: loaded.then(|| pair_speculation(&readings.speculation)),
        step_costs: step_costs(&readings.step_costs),
    }
}

fn info(daemon: &Daemon, pair: &Pair, readings: &Readings) -> v1::PairInfo {
    let source = |model: &tandem_models::ModelRef| model.to_string();
    let (state, settings) = (pair.state(), pair.settings());
    // What is loaded, where something is: that may be what was configured before.
    let recipe = match state.resident() {
        Some(resident) => &resident.recipe,
        None => &settings.recipe,
    };
    let plain = readings.speculation_off.is_some();
    let mut info = v1::PairInfo {
        name: pair.name.clone(),
        is_default: pair.name == daemon.residency.config().default_pair,
        target: Some(v1::ModelInfo {
            source: source(&recipe.target),
            ..Default::default()
        }),
        draft: recipe.draft.file().map(|draft| v1::ModelInfo {
            source: source(draft),
            ..Default::default()
        }),
        draft_methods: draft_methods(drafters(recipe, !plain)),
        speculation_off_reason: readings.speculation_off.clone().unwrap_or_default(),
        load_progress: pair.load_progress().map(load_progress),
        keep_alive: Some(convert::keep_alive(pair.keep_alive())),
        draining: count(pair.retiring()),
        ..Default::default()
    };
    if let Some(resident) = state.resident() {
        let report = &resident.report;
        describe(&mut info.target, &report.target);
        if let Some(draft) = &report.draft {
            describe(&mut info.draft, draft);
        }
        info.exit_layer = report.exit_layer.map_or(0, count);
        info.context_length = count(report.context_length);
        info.warnings.clone_from(&report.warnings);
    }
    let residency = match state {
        PairState::Cold(failure) => {
            info.error = failure.map_or_else(String::new, |failure| failure.error.to_string());
            v1::Residency::Cold
        }
        PairState::Loading => v1::Residency::Loading,
        PairState::Warm(_) if daemon.lifecycle.phase() == Phase::Serving => v1::Residency::Warm,
        PairState::Warm(_) | PairState::Draining(_) => v1::Residency::Draining,
        PairState::Unloading | PairState::Removed => v1::Residency::Unloading,
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
