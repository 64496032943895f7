//! `tandem cache`: what prepared weights take on the disk, and how to be rid of them. Works on the files, with or
//! without a daemon.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tandem_client::Paths;
use tandem_prepared::{Entry, Store};

use crate::failure::Failure;
use crate::output::Output;
use crate::summary::{age, bytes};
use crate::visible::one_line;

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List prepared weights, those used last first
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove prepared weights; a daemon that needs them makes them anew when it starts
    Clear(ClearArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// Model, model file, or id (at least 6 digits of it), as `tandem cache list` prints them
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// Remove everything
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &CacheCommand) -> Result<(), Failure> {
    let directory = Paths::from_env()?.prepared_dir();
    // The limit is the daemon's business: here nothing is added.
    let store = Store::new(directory, u64::MAX);
    match command {
        CacheCommand::List { json } => list(&store, *json),
        CacheCommand::Clear(args) => clear(&store, args),
    }
}

fn list(store: &Store, json: bool) -> Result<(), Failure> {
    let entries = store.list()?;
    let total_bytes = sum(&entries);
    let mut output = Output::new();
    if json {
        return output.json(&json!({
            "directory": store.directory(),
            "total_bytes": total_bytes,
            "entries": entries.iter().map(value).collect::<Vec<_>>(),
        }));
    }
    let directory = store.directory().display();
    if entries.is_empty() {
        return output.line(&format!("no prepared weights in {directory}"));
    }
    output.text(&table(&entries, SystemTime::now()))?;
    output.line(&format!(
        "{} in {}, in {directory}",
        bytes(total_bytes),
        match entries.len() {
            1 => "1 file".to_owned(),
            files => format!("{files} files"),
        }
    ))
}

fn clear(store: &Store, args: &ClearArgs) -> Result<(), Failure> {
    let removed = if args.all {
        store.clear()?
    } else {
        let entries = store.list()?;
        // Before the first is removed: a name that is wrong removes nothing.
        for name in &args.names {
            if !entries.iter().any(|entry| entry.is_called(name)) {
                return Err(Failure::NotCached(name.clone()));
            }
        }
        let is_meant = |entry: &Entry| args.names.iter().any(|name| entry.is_called(name));
        let meant: Vec<Entry> = entries.into_iter().filter(is_meant).collect();
        meant.iter().try_for_each(|entry| store.remove(entry))?;
        meant
    };
    let mut output = Output::new();
    if args.json {
        return output.json(&json!({
            "removed": removed.iter().map(value).collect::<Vec<_>>(),
            "removed_bytes": sum(&removed),
        }));
    }
    for entry in &removed {
        let kept = if entry.in_use {
            "; the daemon that uses it keeps it until it ends"
        } else {
            ""
        };
        output.line(&format!(
            "removed {}, {}{kept}",
            model(entry),
            bytes(entry.bytes)
        ))?;
    }
    if removed.is_empty() {
        output.line("nothing to remove")?;
    }
    Ok(())
}

fn sum(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| entry.bytes).sum()
}

fn value(entry: &Entry) -> Value {
    let summary = entry.summary.as_ref().ok();
    let since_epoch = entry.last_used.duration_since(UNIX_EPOCH);
    json!({
        "id": entry.id(),
        "path": entry.path,
        "model": summary.map(|summary| &summary.model),
        "source": summary.map(|summary| &summary.source),
        "isa": summary.map(|summary| &summary.isa),
        "layout": summary.map(|summary| summary.layout),
        "bytes": entry.bytes,
        "last_used_unix_ms": since_epoch.map_or(0, |since| since.as_millis() as u64),
        "in_use": entry.in_use,
        "damage": entry.summary.as_ref().err().map(ToString::to_string),
    })
}

fn model(entry: &Entry) -> String {
    match &entry.summary {
        Ok(summary) => one_line(&format!("{} for {}", summary.model, summary.isa)).into_owned(),
        Err(_) => format!("the damaged file {}", entry.id()),
    }
}

fn table(entries: &[Entry], now: SystemTime) -> String {
    let mut rows = vec![["ID", "MODEL", "ISA", "SIZE", "LAST USED"].map(str::to_owned)];
    for entry in entries {
        let (model, isa) = match &entry.summary {
            Ok(summary) => (
                one_line(&summary.model).into_owned(),
                one_line(&summary.isa).into_owned(),
            ),
            Err(damage) => (
                one_line(&format!("damaged: {damage}")).into_owned(),
                "-".to_owned(),
            ),
        };
        let used = now.duration_since(entry.last_used);
        let mut used = age(used.unwrap_or(Duration::ZERO));
        if entry.in_use {
            used.push_str(", in use");
        }
        let id = entry.id().chars().take(12).collect();
        rows.push([id, model, isa, bytes(entry.bytes), used]);
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for [id, model, isa, size, used] in &rows {
        let [a, b, c, d] = widths;
        writeln!(text, "{id:<a$}  {model:<b$}  {isa:<c$}  {size:>d$}  {used}")
            .expect("writing to a String does not fail");
    }
    text
}
