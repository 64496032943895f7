//! Table 1: a long prompt, as the mobile write-up has it.

use super::Table;
use super::format::{NOTHING, bytes, number, percent, ratio, spread};
use crate::Report;
use crate::method::{Method, Serving};
use crate::report::{Long, Memory};
use crate::stats::{Spread, median};

/// Makes the table, where the long prompt was asked.
pub(super) fn table(report: &Report) -> Option<Table> {
    let first = report.long.first()?;
    let title = format!(
        "Table 1: a prompt of {} tokens, an answer of up to {}",
        first.prompt_tokens,
        report.long.iter().map(|run| run.tokens).max().unwrap_or(0)
    );
    let mut table = Table::new(
        title,
        [
            "method",
            if first.cold {
                "cold TTFT ms"
            } else {
                "TTFT ms"
            },
            "sustained tok/s",
            "tokens",
            "accepted",
            "mean length",
            "peak footprint",
            "headroom",
            "J/token",
        ],
    );
    for method in report.methods() {
        let runs: Vec<&Long> = report
            .long
            .iter()
            .filter(|run| run.method == method)
            .collect();
        if runs.is_empty() {
            continue;
        }
        let memory = memory(report, method);
        let drafted: u64 = runs.iter().map(|run| run.speculation.drafted).sum();
        let accepted: u64 = runs.iter().map(|run| run.speculation.accepted).sum();
        let lengths = runs
            .iter()
            .map(|run| run.speculation.mean_length)
            .filter(|length| *length > 0.0);
        let joules = runs
            .iter()
            .filter_map(|run| Some(run.joules? / f64::from(run.tokens.max(1))));
        table.row([
            method.to_string(),
            spread(Spread::of(runs.iter().map(|run| run.first_token * 1e3)), 0),
            spread(Spread::of(runs.iter().filter_map(|run| run.rate())), 1),
            number(median(runs.iter().map(|run| f64::from(run.tokens))), 0),
            percent(ratio(accepted, drafted)),
            number(median(lengths), 2),
            memory.map_or_else(|| NOTHING.to_owned(), |memory| bytes(memory.peak_footprint)),
            memory.map_or_else(|| NOTHING.to_owned(), |memory| bytes(headroom(memory))),
            number(median(joules), 2),
        ]);
    }
    notes(&mut table, report, first);
    Some(table)
}

fn notes(table: &mut Table, report: &Report, first: &Long) {
    if first.cold {
        let starts = report.long.iter().filter_map(|run| run.start);
        table.note(format!(
            "Cold: the first request of a daemon that has just started (start to serving: {} s), with nothing but what the \
             method needs.",
            number(median(starts), 2)
        ));
    } else {
        table.note(
            "Not cold: the daemon served already, and its footprint is that of everything it has.",
        );
    }
    table.note(
        "Footprint is dirty memory. Headroom is the budget less footprint and mapped weights, which are clean: the system can \
         take them back. Accepted: of the drafted tokens; trees draft alternatives, of which at most one can stand. Mean \
         length: tokens per drafted step, the recovered or bonus token counted.",
    );
    if let crate::energy::Source::Absent(reason) = &report.energy {
        table.note(format!("No energy: {reason}."));
    }
}

fn headroom(memory: &Memory) -> u64 {
    memory
        .budget
        .saturating_sub(memory.peak_footprint + memory.mapped_weights)
}

/// Finds the memory of a method's own daemon, or of the daemon that served already.
pub(super) fn memory(report: &Report, method: Method) -> Option<&Memory> {
    let wanted: Option<Serving> = report.pair.usual.map(|usual| method.alone(usual));
    report.memory.iter().find(|memory| memory.serving == wanted)
}
