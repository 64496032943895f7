//! What happened, as `--json` prints it.

use serde_json::{Value, json};
use tandem_client::v1::WatchResponse;
use tandem_client::v1::watch_response::Event;

use super::{enum_name, load_progress, reload};
use crate::summary::milliseconds;

pub(crate) fn event(event: &WatchResponse) -> Value {
    let (kind, details) = match &event.event {
        None => ("unknown", Value::Null),
        Some(Event::Loading(load)) => ("loading", load_progress(load)),
        Some(Event::Ready(ready)) => ("ready", json!({ "took_ms": milliseconds(ready.took) })),
        Some(Event::Failed(failed)) => ("failed", json!({ "error": failed.error })),
        Some(Event::Draining(draining)) => ("draining", json!({ "running": draining.running })),
        Some(Event::Unloaded(unloaded)) => (
            "unloaded",
            json!({
                "reason": unloaded.reason,
                "freed_bytes": unloaded.freed_bytes,
                "took_ms": milliseconds(unloaded.took),
            }),
        ),
        Some(Event::Shed(shed)) => (
            "shed",
            json!({
                "freed_bytes": shed.freed_bytes,
                "unmapped_bytes": shed.unmapped_bytes,
                "took_ms": milliseconds(shed.took),
            }),
        ),
        Some(Event::Restored(restored)) => (
            "restored",
            json!({ "took_ms": milliseconds(restored.took) }),
        ),
        Some(Event::Reloaded(changes)) => ("reloaded", reload(changes)),
        Some(Event::ReloadFailed(failed)) => ("reload_failed", json!({ "error": failed.error })),
        Some(Event::Memory(memory)) => (
            "memory",
            json!({
                "pressure": enum_name(memory.pressure().as_str_name(), "PRESSURE_"),
                "stage": enum_name(memory.stage().as_str_name(), "MEMORY_STAGE_"),
                "footprint": memory.footprint,
                "budget": memory.budget,
            }),
        ),
        Some(Event::Hanging(hanging)) => ("hanging", json!({ "where": hanging.r#where })),
        Some(Event::Missed(count)) => ("missed", json!({ "count": count })),
    };
    json!({ "event": kind, "pair": event.pair, "details": details })
}
