//! What a reader has to know beside the tables.

use crate::Report;
use crate::report::{Model, Pair};

/// Says what was measured, where and how.
#[must_use]
pub fn circumstances(report: &Report) -> Vec<String> {
    let Pair {
        target,
        draft,
        exit_adapter,
        exit_layer,
        ..
    } = &report.pair;
    let machine = &report.machine;
    let mut lines = vec![
        format!(
            "{}, {} logical processors, {}, {}; backend {}, {}",
            machine.processor,
            machine.cores,
            super::bytes(machine.memory_bytes),
            machine.system,
            report.pair.backend,
            if report.pair.batch_invariant {
                "batch-invariant"
            } else {
                "not batch-invariant"
            }
        ),
        format!("target {}", model(target)),
    ];
    lines.extend(draft.as_ref().map(|draft| {
        let disparity = target.parameters as f64 / draft.parameters.max(1) as f64;
        format!("draft {}, {disparity:.0}:1", model(draft))
    }));
    if *exit_layer > 0 {
        let adapter = exit_adapter.as_ref().map_or_else(
            || "without an adapter".to_owned(),
            |adapter| format!("with the exit adapter {}", model(adapter)),
        );
        lines.push(format!(
            "self-drafting after {exit_layer} layers, {adapter}"
        ));
    }
    let settings = &report.settings;
    let rounds = report
        .runs
        .iter()
        .map(|run| run.round + 1)
        .max()
        .unwrap_or(0);
    lines.push(format!(
        "tandem {}, {}, {} prompts{}, {rounds} rounds of at most {} tokens, greedy, {:.0} s in all{}",
        report.tandem,
        if settings.private {
            "private daemons"
        } else {
            "the running daemon"
        },
        settings.prompts,
        if settings.shipped_prompts { "" } else { " of the user's" },
        settings.tokens,
        settings.seconds,
        if settings.quick { " (--quick)" } else { "" },
    ));
    lines.extend(
        report
            .absent
            .iter()
            .map(|absent| format!("{} is not measured: {}", absent.method, absent.reason)),
    );
    lines
}

fn model(model: &Model) -> String {
    format!(
        "{} {}, {:.0} M parameters, {}",
        model.name,
        model.quantization,
        model.parameters as f64 / 1e6,
        super::bytes(model.weight_bytes)
    )
}

/// Says whether texts were the same, and whether the machine was quiet.
#[must_use]
pub fn findings(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    let texts = &report.texts;
    if texts.compared > 0 {
        lines.push(match texts.different.len() {
            0 => format!(
                "Texts: {} answers were compared with the first to their prompt, and all are the same, token for token.",
                texts.compared
            ),
            count => format!(
                "TEXTS DIFFER in {count} cases of {} answers: {}.",
                texts.compared,
                texts.different.join("; ")
            ),
        });
    }
    let quiet = &report.quiet;
    let warnings = quiet.warnings();
    if warnings.is_empty() {
        let others = quiet.others_meanwhile.map_or_else(String::new, |share| {
            format!(" Others used {:.1} % of it.", share * 100.0)
        });
        lines.push(format!("The machine was quiet.{others}"));
    } else {
        lines.push(format!(
            "THE MACHINE WAS NOT QUIET: {}. Ratios stand more than absolute figures do; better measure again.",
            warnings.join("; ")
        ));
    }
    lines
}
