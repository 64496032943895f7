//! What changed between two reports, beyond noise.
//!
//! Each figure has groups of samples: one per prompt, or one alone. Groups are resampled with replacement (the bootstrap), each
//! within itself, so that prompts that differ are no noise. A figure changed where the middle 95 % of the resampled ratios leave
//! one side of 1, and the change is more than what two runs of the same program differ by anyway.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::Report;
use crate::method::Method;
use crate::stats::{geometric_mean, median, quantile};
use crate::tables::Table;

const RESAMPLES: usize = 2000;
/// What is left and right of the interval.
const TAIL: f64 = 0.025;
/// Changes below this are none: layouts of memory and code differ from start to start.
const LEAST_CHANGE: f64 = 0.03;

/// Samples in groups that are compared one with one.
pub type Groups = BTreeMap<String, Vec<f64>>;

/// A figure of two reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What it is.
    pub figure: String,
    /// Before.
    pub old: f64,
    /// Now.
    pub new: f64,
    /// Now over before.
    pub ratio: f64,
    /// Middle 95 % of the ratio.
    pub interval: (f64, f64),
}

impl Change {
    /// Whether it is more than noise.
    #[must_use]
    pub fn is_real(&self) -> bool {
        let (low, high) = self.interval;
        (low > 1.0 || high < 1.0) && (self.ratio - 1.0).abs() >= LEAST_CHANGE
    }
}

/// Samples of one group, before and now.
#[derive(Clone, Copy)]
struct Both<'a> {
    old: &'a [f64],
    new: &'a [f64],
}

/// Compares groups that both have; `None` where there is none, or too few samples to tell noise.
#[must_use]
pub fn change(figure: impl Into<String>, old: &Groups, new: &Groups) -> Option<Change> {
    let both: Vec<Both<'_>> = old
        .iter()
        .filter_map(|(name, old)| Some((old, new.get(name)?)))
        .map(|(old, new)| Both { old, new })
        .filter(|both| !both.old.is_empty() && !both.new.is_empty())
        .collect();
    let few = |samples: usize| samples < 2;
    if few(both.iter().map(|both| both.old.len()).sum())
        || few(both.iter().map(|both| both.new.len()).sum())
    {
        return None;
    }
    let middle = |samples: &[f64]| median(samples.iter().copied());
    let before = geometric_mean(both.iter().filter_map(|both| middle(both.old)))?;
    let now = geometric_mean(both.iter().filter_map(|both| middle(both.new)))?;
    // Always the same numbers: a comparison that is made again says the same.
    let mut dice = StdRng::seed_from_u64(1);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            geometric_mean(both.iter().filter_map(|both| {
                Some(
                    median(resample(both.new, &mut dice))? / median(resample(both.old, &mut dice))?,
                )
            }))
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    Some(Change {
        figure: figure.into(),
        old: before,
        new: now,
        ratio: now / before,
        interval: (quantile(&ratios, TAIL)?, quantile(&ratios, 1.0 - TAIL)?),
    })
}

fn resample(samples: &[f64], dice: &mut StdRng) -> Vec<f64> {
    let draw = |_| samples[(dice.next_u64() % samples.len() as u64) as usize];
    (0..samples.len()).map(draw).collect()
}

/// Compares all figures that both reports have.
#[must_use]
pub fn changes(old: &Report, new: &Report) -> Vec<Change> {
    let (before, mut now) = (figures(old), figures(new));
    before
        .into_iter()
        .filter_map(|(name, groups)| {
            let other = now.iter().position(|(other, _)| *other == name)?;
            let (_, others) = now.swap_remove(other);
            change(name, &groups, &others)
        })
        .collect()
}

/// The figures of a report, in the order of its tables.
fn figures(report: &Report) -> Vec<(String, Groups)> {
    let mut figures: Vec<(String, Groups)> = Vec::new();
    let mut add = |figure: String, group: String, value: f64| {
        let at = figures.iter().position(|(name, _)| *name == figure);
        let at = at.unwrap_or_else(|| {
            figures.push((figure, Groups::new()));
            figures.len() - 1
        });
        figures[at].1.entry(group).or_default().push(value);
    };
    for run in &report.long {
        add(
            format!("TTFT ms, {}", run.method),
            String::new(),
            run.first_token * 1e3,
        );
        if let Some(rate) = run.rate() {
            add(
                format!("sustained tok/s, {}", run.method),
                String::new(),
                rate,
            );
        }
    }
    for method in report.methods() {
        for category in report.categories() {
            let ratios = crate::tables::speedups(report, method, Some(category));
            for (prompt, ratio) in ratios.into_iter().filter(|_| method != Method::None) {
                // An index means something only among the same prompts.
                let group = format!("{} {prompt}", report.settings.prompts);
                add(
                    format!("speed-up, {category}, {method}"),
                    group.clone(),
                    ratio,
                );
                add(
                    format!("speed-up, all, {method}"),
                    format!("{category} {group}"),
                    ratio,
                );
            }
        }
    }
    for run in report.runs.iter().filter(|run| run.method == Method::None) {
        if let Some(rate) = run.rate() {
            add("plain tok/s".to_owned(), run.prompt.to_string(), rate);
        }
    }
    for (rows, cost) in report.row_costs().filter(|(rows, _)| *rows > 1) {
        add(format!("C({rows})/C(1)"), String::new(), cost);
    }
    figures
}

/// Shows what changed beyond noise.
#[must_use]
pub fn table(old: &Report, new: &Report) -> Table {
    let changes = changes(old, new);
    let mut table = Table::new(
        "Changes beyond noise",
        [
            "figure",
            "before",
            "now",
            "ratio",
            "95 % of resampled ratios",
        ],
    );
    for change in changes.iter().filter(|change| change.is_real()) {
        table.row([
            change.figure.clone(),
            format!("{:.2}", change.old),
            format!("{:.2}", change.new),
            format!("{:.2}", change.ratio),
            format!("{:.2}–{:.2}", change.interval.0, change.interval.1),
        ]);
    }
    table.note(format!(
        "{} of {} figures that both reports have; the others differ by less than noise, or by less than {:.0} %.",
        table.rows.len(),
        changes.len(),
        LEAST_CHANGE * 100.0
    ));
    for difference in circumstances(old, new) {
        table.note(difference);
    }
    table
}

/// Why figures may differ without anything having changed.
fn circumstances(old: &Report, new: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if old.machine.processor != new.machine.processor || old.machine.cores != new.machine.cores {
        notes.push("The machines differ: only ratios can be compared.".to_owned());
    }
    if old.pair.target != new.pair.target || old.pair.draft != new.pair.draft {
        notes.push("The pairs differ.".to_owned());
    }
    if old.settings.prompts != new.settings.prompts || old.settings.tokens != new.settings.tokens {
        notes.push("The prompts or the lengths of answers differ.".to_owned());
    }
    for (name, report) in [("Before", old), ("Now", new)] {
        let warnings = report.quiet.warnings();
        if !warnings.is_empty() {
            notes.push(format!(
                "{name}, the machine was not quiet: {}.",
                warnings.join("; ")
            ));
        }
    }
    notes
}

#[cfg(test)]
mod tests;
