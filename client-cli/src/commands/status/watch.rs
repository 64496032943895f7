//! What happens to pairs and memory, one line each.

use tandem_client::v1::watch_response::Event;
use tandem_client::v1::{LoadProgress, WatchResponse};
use tandem_client::{Client, Events};

use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::summary::{bytes, load_percent, load_stage, milliseconds, reload};
use crate::visible::one_line;

/// Prints events until the daemon ends or the user interrupts.
pub(super) async fn follow(mut events: Events, as_json: bool) -> Result<(), Failure> {
    let mut output = Output::new();
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            _ = tokio::signal::ctrl_c() => return Err(Failure::Interrupted),
        };
        let Some(event) = event else { return Ok(()) };
        if as_json {
            output.json(&json::event(&event))?;
        } else {
            output.line(&one_line(&line(&event)))?;
        }
    }
}

/// Begins to watch, before the status is asked for, so that nothing happens in between.
pub(super) async fn begin(client: &Client) -> Result<Events, Failure> {
    Ok(client.watch().await?)
}

fn line(event: &WatchResponse) -> String {
    let what = match &event.event {
        None => "something this version does not know".to_owned(),
        Some(event) => words(event),
    };
    if event.pair.is_empty() {
        what
    } else {
        format!("{}: {what}", event.pair)
    }
}

fn words(event: &Event) -> String {
    match event {
        Event::Loading(load) => loading(load),
        Event::Ready(ready) => format!("ready after {:.0} ms", milliseconds(ready.took)),
        Event::Failed(failed) => format!("failed: {}", failed.error),
        Event::Draining(draining) => {
            format!("draining, {} requests still run", draining.running)
        }
        Event::Unloaded(unloaded) => format!(
            "unloaded ({}), freed {} in {:.0} ms",
            unloaded.reason,
            bytes(unloaded.freed_bytes),
            milliseconds(unloaded.took)
        ),
        Event::Shed(shed) => format!(
            "shed the draft, freed {} and unmapped {} in {:.0} ms",
            bytes(shed.freed_bytes),
            bytes(shed.unmapped_bytes),
            milliseconds(shed.took)
        ),
        Event::Restored(restored) => {
            format!(
                "the draft is back after {:.0} ms",
                milliseconds(restored.took)
            )
        }
        Event::Reloaded(changes) => format!("reloaded: {}", reload(changes)),
        Event::ReloadFailed(failed) => format!("reload failed: {}", failed.error),
        Event::Memory(memory) => format!(
            "memory pressure {}, stage {}, {} of {} budget",
            json::enum_name(memory.pressure().as_str_name(), "PRESSURE_"),
            json::enum_name(memory.stage().as_str_name(), "MEMORY_STAGE_"),
            bytes(memory.footprint),
            bytes(memory.budget)
        ),
        Event::Hanging(hanging) if hanging.r#where.is_empty() => "goes on".to_owned(),
        Event::Hanging(hanging) => format!("hangs: {}", hanging.r#where),
        Event::Missed(count) => format!("{count} events were missed"),
    }
}

fn loading(load: &LoadProgress) -> String {
    let percent = load_percent(load).map_or_else(String::new, |percent| format!(", {percent} %"));
    format!("{} {}{percent}", load.model, load_stage(load))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_client::v1::{Hanging, PairUnloaded, ReloadFailed};

    fn said(pair: &str, event: Event) -> String {
        line(&WatchResponse {
            pair: pair.to_owned(),
            event: Some(event),
        })
    }

    #[test]
    fn events_read_well() {
        let unloaded = PairUnloaded {
            reason: "idle".to_owned(),
            freed_bytes: 90 << 20,
            took: std::time::Duration::from_millis(12).try_into().ok(),
        };
        assert_eq!(
            said("code", Event::Unloaded(unloaded)),
            "code: unloaded (idle), freed 90 MiB in 12 ms"
        );
        let failed = ReloadFailed {
            error: "c.toml:3: unknown key".to_owned(),
        };
        assert_eq!(
            said("", Event::ReloadFailed(failed)),
            "reload failed: c.toml:3: unknown key"
        );
        assert_eq!(said("", Event::Hanging(Hanging::default())), "goes on");
        assert!(line(&WatchResponse::default()).contains("does not know"));
    }
}
