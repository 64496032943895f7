//! Table 3: what each method holds in memory.

use super::Table;
use super::format::bytes;
use super::long::memory;
use crate::Report;

/// Makes the table, where memory was read.
pub(super) fn table(report: &Report) -> Option<Table> {
    let context = report.memory.iter().map(|memory| memory.context).max()?;
    let mut table = Table::new(
        format!("Table 3: memory at a context of {context} tokens"),
        [
            "method",
            "weights",
            "KV",
            "draft weights",
            "draft KV",
            "sum",
            "over none",
            "bytes/token of KV",
        ],
    );
    let sum = |memory: &crate::report::Memory| {
        memory.weights + memory.kv + memory.draft_weights + memory.draft_kv
    };
    let mut plain = None;
    for method in report.methods() {
        let Some(memory) = memory(report, method) else {
            continue;
        };
        let total = sum(memory);
        let plain = *plain.get_or_insert(total);
        table.row([
            method.to_string(),
            bytes(memory.weights),
            bytes(memory.kv),
            bytes(memory.draft_weights),
            bytes(memory.draft_kv),
            bytes(total),
            format!("{:+.1} %", (total as f64 / plain as f64 - 1.0) * 100.0),
            ((memory.kv + memory.draft_kv) / u64::from(memory.context.max(1))).to_string(),
        ]);
    }
    table.note(
        "As the daemon accounts for it, near the end of an answer; caches grow in pieces, so bytes per token are a bound. A target that drafts for itself keeps its drafts' keys and \
         values in its own cache; an exit adapter has one layer. What lookup holds is the text that it searches.",
    );
    if report.memory.iter().any(|memory| memory.serving.is_none()) {
        table.note("The daemon served already, so every row shows all that it has.");
    }
    Some(table)
}
