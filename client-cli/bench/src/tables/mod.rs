//! A report as tables, for a terminal and for Markdown.

mod cost;
mod facts;
mod format;
mod long;
mod memory;
mod speed;
mod steps;
mod table;

pub(crate) use cost::{acceptance, curve, draft_cost, drafter, step_cost};
pub use facts::{circumstances, findings};
pub use format::bytes;
pub(crate) use speed::{overall, speedups};
pub(crate) use steps::{OPERATIONS, parts};
pub use table::{Cells, Table};

use crate::Report;

/// Returns the tables of everything that was measured.
#[must_use]
pub fn tables(report: &Report) -> Vec<Table> {
    [
        long::table(report),
        speed::table(report),
        speed::texts(report),
        memory::table(report),
        steps::table(report),
        cost::table(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Writes the whole report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = "# tandem bench\n\n".to_owned();
    for line in circumstances(report) {
        text.push_str(&format!("- {line}\n"));
    }
    for table in tables(report) {
        text.push('\n');
        text.push_str(&table.markdown());
    }
    text.push_str("\n## Notes\n\n");
    for line in findings(report) {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

/// Writes the whole report for a terminal.
#[must_use]
pub fn terminal(report: &Report) -> String {
    let mut text = String::new();
    for line in circumstances(report) {
        text.push_str(&table::wrapped(&line, ""));
    }
    for table in tables(report) {
        text.push('\n');
        text.push_str(&table.terminal());
    }
    text.push('\n');
    for line in findings(report) {
        text.push_str(&table::wrapped(&line, ""));
    }
    text
}
