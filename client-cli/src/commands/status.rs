//! `tandem status`: what the daemon is doing.

mod speculation;
mod watch;

use std::fmt::Write;
use std::time::Duration;

use tandem_client::v1::{MemoryStage, ModelInfo, PairStatus, StatusResponse};
use tandem_client::{Client, Paths, Retry, launch};

use crate::args::StatusArgs;
use crate::failure::Failure;
use crate::json;
use crate::output::Output;
use crate::summary::{age, bytes, clock, load_percent, load_stage, milliseconds};
use crate::visible::one_line;

/// How long the daemon may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// What stands in the place of what a pair shows when it is loaded.
const NOT_LOADED: &str = "not known before the pair is loaded";

pub(crate) async fn run(args: StatusArgs) -> Result<(), Failure> {
    let client = Client::from_env()?.with_retry(Retry::never());
    let paths = Paths::from_env()?;
    let events = if args.watch {
        // Whoever answers this begins to tell at once.
        launch::ask(&paths, ANSWER, client.health()).await?;
        Some(watch::begin(&client).await?)
    } else {
        None
    };
    let status = launch::ask(&paths, ANSWER, client.status()).await?;
    let mut output = Output::new();
    if args.json {
        output.json(&json::status(&status))?;
    } else {
        output.text(&table(&status))?;
    }
    match events {
        Some(events) => watch::follow(events, args.json).await,
        None => Ok(()),
    }
}

fn table(status: &StatusResponse) -> String {
    let mut text = String::new();
    let uptime = Duration::from_secs_f64(milliseconds(status.uptime) / 1000.0);
    let memory = status.memory.unwrap_or_default();
    let totals = status.totals.unwrap_or_default();
    let config = if status.config_path.is_empty() {
        "none"
    } else {
        &status.config_path
    };
    let backend = match (status.backend.as_str(), status.batch_invariant) {
        ("", _) => "not known before a pair is loaded".to_owned(),
        (backend, true) => format!("{backend}, batch-invariant"),
        (backend, false) => format!("{backend}, not batch-invariant"),
    };
    row(
        &mut text,
        "daemon",
        &format!(
            "{}, process {}, up {}",
            status.server_version,
            status.pid,
            clock(uptime)
        ),
    );
    row(&mut text, "socket", &status.socket_path);
    row(&mut text, "config", config);
    row(&mut text, "backend", &backend);
    row(
        &mut text,
        "memory",
        &format!(
            "{} of {} budget, {} in the machine",
            bytes(memory.footprint),
            bytes(memory.budget),
            bytes(memory.physical)
        ),
    );
    row(&mut text, "pressure", &pressure(status));
    row(
        &mut text,
        "weights",
        &format!(
            "targets {}, drafts and exit adapters {}, {} of prepared files mapped",
            bytes(memory.target_weights),
            bytes(memory.draft_weights),
            bytes(memory.mapped_weights)
        ),
    );
    row(
        &mut text,
        "KV cache",
        &format!(
            "targets {}, drafts and lookup {}",
            bytes(memory.target_kv),
            bytes(memory.draft_kv)
        ),
    );
    row(
        &mut text,
        "requests",
        &format!(
            "{} started, {} completed, {} cancelled, {} failed, {} rejected",
            totals.started, totals.completed, totals.cancelled, totals.failed, totals.rejected
        ),
    );
    row(
        &mut text,
        "tokens",
        &format!(
            "{} prompt, {} generated, {} drafted, {} accepted",
            totals.prompt_tokens,
            totals.completion_tokens,
            totals.draft_tokens,
            totals.accepted_tokens
        ),
    );
    speculation::add_rows(&mut text, status.speculation.as_ref());
    add_troubles(&mut text, status);
    for pair in &status.pairs {
        add_pair(&mut text, pair);
    }
    text
}

/// How short of memory the system is, what was done about it, and what else is wrong.
fn pressure(status: &StatusResponse) -> String {
    let pressure = json::enum_name(status.pressure().as_str_name(), "PRESSURE_");
    let done = match status.memory_stage() {
        MemoryStage::Unspecified | MemoryStage::Free => "nothing given up",
        MemoryStage::Held => "no more requests run at once than do now",
        MemoryStage::Shed => "drafts shed, streams go on plainly",
        MemoryStage::Refusing => "new requests are refused",
        MemoryStage::Unloaded => "new requests are refused, idle pairs unloaded",
    };
    format!("{pressure}; {done}")
}

/// Adds what a person has to know of the daemon as a whole.
fn add_troubles(text: &mut String, status: &StatusResponse) {
    if !status.hanging.is_empty() {
        row(text, "hangs", &status.hanging);
    }
    let failed = status
        .reload
        .as_ref()
        .filter(|reload| !reload.error.is_empty());
    if let Some(reload) = failed {
        let ago = Duration::from_secs_f64(milliseconds(reload.ago) / 1000.0);
        let error = format!("{} ({})", reload.error, age(ago));
        row(text, "reload", &error);
    }
}

fn add_pair(text: &mut String, pair: &PairStatus) {
    let info = pair.info.clone().unwrap_or_default();
    let residency = json::enum_name(info.residency().as_str_name(), "RESIDENCY_");
    let default = if info.is_default { ", default" } else { "" };
    let loading = info
        .load_progress
        .as_ref()
        .map_or_else(String::new, |load| {
            let percent =
                load_percent(load).map_or_else(String::new, |percent| format!(" {percent} %"));
            format!(", {}{percent}", load_stage(load))
        });
    text.push('\n');
    row(
        text,
        "pair",
        &format!("{} ({residency}{default}{loading})", info.name),
    );
    row(
        text,
        "target",
        &info.target.as_ref().map_or_else(|| "-".to_owned(), model),
    );
    row(text, "draft", &speculation::draft(&info));
    let context = match info.context_length {
        0 => NOT_LOADED.to_owned(),
        tokens => format!("{tokens} tokens"),
    };
    row(text, "context", &context);
    row(
        text,
        "load",
        &format!(
            "{} running, {} waiting, room for {}",
            pair.running, pair.waiting, pair.queue_capacity
        ),
    );
    if let Some(memory) = pair.memory {
        row(
            text,
            "memory",
            &format!(
                "target {} and {} of cache, {} {} and {} of cache",
                bytes(memory.target_weights),
                bytes(memory.target_kv),
                speculation::weights(&info),
                bytes(memory.draft_weights),
                bytes(memory.draft_kv)
            ),
        );
    }
    let methods = match pair.speculation {
        Some(_) => speculation::methods(&info),
        None => NOT_LOADED.to_owned(),
    };
    row(text, "speculation", &methods);
    speculation::add_rows(text, pair.speculation.as_ref());
    if !info.error.is_empty() {
        row(text, "error", &info.error);
    }
    for warning in &info.warnings {
        row(text, "warning", warning);
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    let value = one_line(value);
    writeln!(text, "{name:<12} {value}").expect("writing to a String does not fail");
}

fn model(model: &ModelInfo) -> String {
    let name = if model.name.is_empty() {
        &model.source
    } else {
        &model.name
    };
    if model.parameters == 0 {
        return name.clone();
    }
    let parameters = model.parameters as f64 / 1e6;
    format!(
        "{name}, {} {}, {parameters:.0} M parameters, {}",
        model.architecture,
        model.quantization,
        bytes(model.weight_bytes)
    )
}
