//! What `--json` prints. Names follow the service definition; times are in milliseconds, memory in bytes.

use std::time::Duration;

use serde_json::{Value, json};
use tandem_client::v1::generate_complete::MatchedStop;
use tandem_client::v1::{
    DraftMethod, GenerateChunk, GenerateComplete, LoadProgress, MemoryStatus, ModelInfo, PairInfo,
    PairStatus, ReloadResponse, SpeculationStats, StatusResponse, StepCost, TokenizeResponse,
};

mod events;

pub(crate) use events::event;

use crate::summary::{milliseconds, tokens_per_second};

pub(crate) fn chunk(chunk: &GenerateChunk) -> Value {
    let mut line = json!({ "type": "chunk", "text": chunk.text, "token_ids": chunk.token_ids });
    if !chunk.logprobs.is_empty() {
        let logprobs = chunk.logprobs.iter().map(|token| {
            let top = token.top.iter();
            let top: Vec<_> = top.map(|top| json!([top.token_id, top.logprob])).collect();
            json!({ "logprob": token.logprob, "top": top })
        });
        line["logprobs"] = logprobs.collect();
    }
    line
}

pub(crate) fn complete(complete: &GenerateComplete) -> Value {
    let usage = complete.usage.unwrap_or_default();
    let timings = complete.timings.unwrap_or_default();
    let (stop_string, stop_token_id) = match &complete.matched_stop {
        Some(MatchedStop::MatchedStopString(text)) => (Some(text), None),
        Some(MatchedStop::MatchedStopTokenId(id)) => (None, Some(id)),
        None => (None, None),
    };
    json!({
        "type": "complete",
        "finish_reason": enum_name(complete.finish_reason().as_str_name(), "FINISH_REASON_"),
        "matched_stop_string": stop_string,
        "matched_stop_token_id": stop_token_id,
        "usage": { "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens },
        "timings": {
            "queue_ms": milliseconds(timings.queue),
            "time_to_first_token_ms": milliseconds(timings.time_to_first_token),
            "decode_ms": milliseconds(timings.decode),
            "total_ms": milliseconds(timings.total),
            "load_ms": timings.load.map(|load| milliseconds(Some(load))),
            "tokens_per_second": tokens_per_second(usage.completion_tokens, &timings),
        },
        "speculation": speculation(complete.speculation.as_ref()),
        "pair": complete.pair,
        "request_id": complete.request_id,
    })
}

pub(crate) fn tokens(answer: &TokenizeResponse) -> Value {
    let mut tokens = json!({ "token_ids": answer.token_ids, "pieces": answer.pieces });
    if !answer.rendered.is_empty() {
        tokens["rendered"] = json!(answer.rendered);
    }
    tokens
}

pub(crate) fn status(status: &StatusResponse) -> Value {
    let totals = status.totals.unwrap_or_default();
    json!({
        "server_version": status.server_version,
        "api_version": status.api_version,
        "pid": status.pid,
        "uptime_ms": milliseconds(status.uptime),
        "socket_path": status.socket_path,
        "config_path": status.config_path,
        "backend": known(&status.backend),
        "batch_invariant": known(&status.backend).map(|_| status.batch_invariant),
        "memory": memory(status.memory),
        "pairs": status.pairs.iter().map(pair).collect::<Vec<_>>(),
        "totals": {
            "started": totals.started,
            "completed": totals.completed,
            "cancelled": totals.cancelled,
            "failed": totals.failed,
            "rejected": totals.rejected,
            "prompt_tokens": totals.prompt_tokens,
            "completion_tokens": totals.completion_tokens,
            "draft_tokens": totals.draft_tokens,
            "accepted_tokens": totals.accepted_tokens,
            "steps": totals.steps,
        },
        "speculation": speculation(status.speculation.as_ref()),
        "pressure": enum_name(status.pressure().as_str_name(), "PRESSURE_"),
        "memory_stage": enum_name(status.memory_stage().as_str_name(), "MEMORY_STAGE_"),
        "reload": status.reload.as_ref().map(|reload| {
            json!({ "ago_ms": milliseconds(reload.ago), "error": reload.error })
        }),
        "hanging": status.hanging,
    })
}

fn pair(pair: &PairStatus) -> Value {
    let info: PairInfo = pair.info.clone().unwrap_or_default();
    json!({
        "name": info.name,
        "is_default": info.is_default,
        "residency": enum_name(info.residency().as_str_name(), "RESIDENCY_"),
        "error": info.error,
        "target": info.target.as_ref().map(model),
        "draft": info.draft.as_ref().map(model),
        "speculation_off_reason": info.speculation_off_reason,
        "draft_methods": info.draft_methods().map(draft_method).collect::<Vec<_>>(),
        "exit_layer": info.exit_layer,
        "context_length": known(&info.context_length),
        "warnings": info.warnings,
        "load_progress": info.load_progress.as_ref().map(load_progress),
        "keep_alive_ms": keep_alive(info.keep_alive),
        "draining": info.draining,
        "running": pair.running,
        "waiting": pair.waiting,
        "queue_capacity": pair.queue_capacity,
        "memory": pair.memory.map(|held| memory(Some(held))),
        "speculation": pair.speculation.as_ref().map(|did| speculation(Some(did))),
        "step_costs": pair.step_costs.iter().map(step_cost).collect::<Vec<_>>(),
    })
}

fn step_cost(cost: &StepCost) -> Value {
    json!({
        "positions": cost.positions,
        "rows": cost.rows,
        "ms": cost.seconds * 1e3,
        "samples": cost.samples,
    })
}

fn speculation(stats: Option<&SpeculationStats>) -> Value {
    let stats = stats.cloned().unwrap_or_default();
    json!({
        "enabled": stats.enabled,
        "off_reason": stats.off_reason,
        "plain_reason": stats.plain_reason,
        "drafter": stats.drafter,
        "steps": stats.steps,
        "drafted_steps": stats.drafted_steps,
        "probe_steps": stats.probe_steps,
        "forced_bypasses": stats.forced_bypasses,
        "declined_steps": stats.declined_steps,
        "bypass_fraction": stats.bypass_fraction,
        "draft_tokens": stats.draft_tokens,
        "accepted_tokens": stats.accepted_tokens,
        "mean_acceptance_length": stats.mean_acceptance_length,
        "accepted_per_position": stats.accepted_per_position,
        "draft_ms": stats.draft_seconds * 1e3,
        "verify_ms": stats.verify_seconds * 1e3,
        "accept_ms": stats.accept_seconds * 1e3,
        "cache_update_ms": stats.cache_update_seconds * 1e3,
        "ledger_ms": stats.ledger_seconds * 1e3,
        "measured_speedup": stats.measured_speedup,
        "expected_speedup": stats.expected_speedup,
        "pipelined_steps": stats.pipelined_steps,
        "foreseen_rounds": stats.foreseen_rounds,
    })
}

/// How long a pair stays loaded without a request; null stands for ever.
fn keep_alive<D: TryInto<Duration>>(limit: Option<D>) -> Option<f64> {
    let limit: Duration = limit?.try_into().ok()?;
    Some(limit.as_secs_f64() * 1e3)
}

/// Words a drafter as the command line does.
pub(crate) fn draft_method(method: DraftMethod) -> String {
    enum_name(method.as_str_name(), "DRAFT_METHOD_")
}

fn model(model: &ModelInfo) -> Value {
    json!({
        "source": model.source,
        "name": known(&model.name),
        "architecture": known(&model.architecture),
        "quantization": known(&model.quantization),
        "parameters": known(&model.parameters),
        "weight_bytes": known(&model.weight_bytes),
        "vocabulary_size": known(&model.vocabulary_size),
        // 0 means something of a model that is loaded.
        "mapped_bytes": known(&model.parameters).map(|_| model.mapped_bytes),
    })
}

/// What is not known before a pair is loaded is empty or 0 on the wire, and null here.
fn known<T: Default + PartialEq>(value: &T) -> Option<&T> {
    (*value != T::default()).then_some(value)
}

fn load_progress(load: &LoadProgress) -> Value {
    json!({
        "model": load.model,
        "stage": enum_name(load.stage().as_str_name(), "LOAD_STAGE_"),
        "done_bytes": load.done_bytes,
        "total_bytes": load.total_bytes,
    })
}

fn memory(memory: Option<MemoryStatus>) -> Value {
    let memory = memory.unwrap_or_default();
    json!({
        "footprint": memory.footprint,
        "budget": memory.budget,
        "target_weights": memory.target_weights,
        "draft_weights": memory.draft_weights,
        "target_kv": memory.target_kv,
        "draft_kv": memory.draft_kv,
        "physical": memory.physical,
        "mapped_weights": memory.mapped_weights,
    })
}

pub(crate) fn reload(changes: &ReloadResponse) -> Value {
    json!({
        "added": changes.added,
        "removed": changes.removed,
        "changed": changes.changed,
        "retried": changes.retried,
        "failed": changes.failed.iter().map(|failed| json!({
            "pair": failed.pair,
            "error": failed.error,
        })).collect::<Vec<_>>(),
        "restart_needed": changes.restart_needed,
    })
}

/// Turns the name of an enum value into the word that people use.
pub(crate) fn enum_name(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase()
}
