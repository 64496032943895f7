//! Table 4: where the time of a step goes.

use super::Table;
use super::format::NOTHING;
use crate::Report;
use crate::claims::STEP_MILLISECONDS;
use crate::method::Method;
use crate::report::Run;
use crate::stats::median;

/// Operations of a step, the rest included.
pub(crate) const OPERATIONS: [&str; 5] = [
    "draft forward",
    "verification",
    "acceptance",
    "cache update",
    "rest",
];

/// Milliseconds of a step by operation.
pub(crate) type Parts = [f64; 5];

/// Returns the median milliseconds of a method's steps, by operation, and tokens per step.
pub(crate) fn parts(report: &Report, method: Method) -> Option<(Parts, f64)> {
    let runs: Vec<&Run> = report
        .runs
        .iter()
        .filter(|run| run.method == method && run.speculation.steps > 0)
        .collect();
    let each = |part: fn(&Run) -> f64| {
        median(
            runs.iter()
                .map(|run| part(run) * 1e3 / run.speculation.steps as f64),
        )
    };
    let parts = [
        each(|run| run.speculation.draft)?,
        each(|run| run.speculation.verify)?,
        each(|run| run.speculation.accept)?,
        each(|run| run.speculation.cache_update)?,
        each(rest)?,
    ];
    let tokens = runs
        .iter()
        .map(|run| f64::from(run.tokens - 1) / run.speculation.steps as f64);
    Some((parts, median(tokens)?))
}

/// Seconds between the first token and the last that belong to no operation.
fn rest(run: &Run) -> f64 {
    let did = &run.speculation;
    (run.decode - did.draft - did.verify - did.accept - did.cache_update).max(0.0)
}

/// Makes the table, where speed was measured.
pub(super) fn table(report: &Report) -> Option<Table> {
    let columns: Vec<(Method, Parts, f64)> = report
        .methods()
        .into_iter()
        .filter_map(|method| parts(report, method).map(|(parts, tokens)| (method, parts, tokens)))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let header = ["operation".to_owned()]
        .into_iter()
        .chain(columns.iter().map(|(method, ..)| method.to_string()))
        .chain(["write-up".to_owned()]);
    let mut table = Table::new("Table 4: milliseconds of a step, and their share", header);
    let claimed: f64 = STEP_MILLISECONDS.iter().map(|(_, ms)| ms).sum();
    for (index, operation) in OPERATIONS.iter().enumerate() {
        let cells = columns.iter().map(|(_, parts, _)| {
            let total: f64 = parts.iter().sum();
            cell(parts[index], total)
        });
        let claim = STEP_MILLISECONDS.get(index);
        let claim = claim.map_or_else(|| NOTHING.to_owned(), |(_, ms)| cell(*ms, claimed));
        table.row(
            [(*operation).to_owned()]
                .into_iter()
                .chain(cells)
                .chain([claim]),
        );
    }
    let totals = columns
        .iter()
        .map(|(_, parts, _)| format!("{:.3}", parts.iter().sum::<f64>()));
    table.row(
        ["step".to_owned()]
            .into_iter()
            .chain(totals)
            .chain([format!("{claimed:.1}")]),
    );
    let tokens = columns.iter().map(|(.., tokens)| format!("{tokens:.2}"));
    table.row(
        ["tokens per step".to_owned()]
            .into_iter()
            .chain(tokens)
            .chain([NOTHING.to_owned()]),
    );
    table.note(
        "Medians over the answers; plain steps that the policy mixes in are counted. Rest: what lies between steps, such as \
         text and socket. The write-up's column is its own, of a 7 B target on an M4 Max.",
    );
    Some(table)
}

fn cell(ms: f64, total: f64) -> String {
    format!(
        "{ms:.3} ({:.0} %)",
        ms / total.max(f64::MIN_POSITIVE) * 100.0
    )
}
