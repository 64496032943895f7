//! Table 2: speed over plain decoding by category, and what the texts were like.

use super::Table;
use super::format::{number, percent, ratio, spread};
use crate::Report;
use crate::method::Method;
use crate::report::Run;
use crate::stats::{Spread, geometric_mean, median};

/// Name of the row over all categories.
pub(crate) const ALL: &str = "all";

/// Returns the speed of each answer over the plain answer to the same prompt in the same round.
pub(crate) fn speedups(
    report: &Report,
    method: Method,
    category: Option<&str>,
) -> Vec<(usize, f64)> {
    let of = |wanted: Method| {
        report.runs.iter().filter(move |run| {
            run.method == wanted && category.is_none_or(|category| run.category == category)
        })
    };
    of(method)
        .filter_map(|run| {
            let same = |plain: &&Run| (plain.prompt, plain.round) == (run.prompt, run.round);
            let plain = of(Method::None).find(same)?;
            Some((run.prompt, run.rate()? / plain.rate()?))
        })
        .collect()
}

/// Returns the geometric mean over prompts of their median speed-ups.
pub(crate) fn overall(report: &Report, method: Method, category: Option<&str>) -> Option<f64> {
    let all = speedups(report, method, category);
    let mut prompts: Vec<usize> = all.iter().map(|(prompt, _)| *prompt).collect();
    prompts.sort_unstable();
    prompts.dedup();
    geometric_mean(prompts.into_iter().filter_map(|prompt| {
        median(
            all.iter()
                .filter(|(other, _)| *other == prompt)
                .map(|(_, ratio)| *ratio),
        )
    }))
}

/// Makes the table of speed-ups, where speed was measured with more than one method.
pub(super) fn table(report: &Report) -> Option<Table> {
    let methods: Vec<Method> = report
        .methods()
        .into_iter()
        .filter(|method| {
            *method != Method::None && report.runs.iter().any(|run| run.method == *method)
        })
        .collect();
    if methods.is_empty() {
        return None;
    }
    let header = ["category".to_owned(), "none tok/s".to_owned()]
        .into_iter()
        .chain(methods.iter().map(ToString::to_string));
    let mut table = Table::new("Table 2: speed over plain decoding", header);
    for category in report.categories() {
        let plain = report
            .runs
            .iter()
            .filter(|run| run.method == Method::None && run.category == category);
        let plain = number(median(plain.filter_map(Run::rate)), 1);
        let cells = methods.iter().map(|method| {
            let ratios = speedups(report, *method, Some(category));
            spread(Spread::of(ratios.into_iter().map(|(_, ratio)| ratio)), 2)
        });
        table.row([category.to_owned(), plain].into_iter().chain(cells));
    }
    let plain = report.runs.iter().filter(|run| run.method == Method::None);
    let plain = number(median(plain.filter_map(Run::rate)), 1);
    let cells = methods
        .iter()
        .map(|method| number(overall(report, *method, None), 2));
    table.row([ALL.to_owned(), plain].into_iter().chain(cells));
    table.note(
        "Each answer over the plain one to the same prompt in the same round: median (quartiles). All: the geometric mean over \
         prompts. Decoding only, without the prompt; greedy; lookup saw no earlier answer.",
    );
    Some(table)
}

/// Makes the table of what the texts were like, where speed was measured.
pub(super) fn texts(report: &Report) -> Option<Table> {
    let drafting: Vec<Method> = report
        .methods()
        .into_iter()
        .filter(|method| {
            report
                .runs
                .iter()
                .any(|run| run.method == *method && run.speculation.drafted > 0)
        })
        .collect();
    if drafting.is_empty() {
        return None;
    }
    let header = ["category", "tokens", "repeated"]
        .map(str::to_owned)
        .into_iter()
        .chain(drafting.iter().map(ToString::to_string));
    let mut table = Table::new("Table 2a: texts, and what of the drafts stood", header);
    for category in report.categories() {
        let of = |method: Method| {
            report
                .runs
                .iter()
                .filter(move |run| run.method == method && run.category == category)
        };
        let tokens = number(median(of(Method::None).map(|run| f64::from(run.tokens))), 0);
        let again = percent(median(of(Method::None).map(|run| run.repeated)));
        let cells = drafting.iter().map(|method| {
            let drafted = of(*method).map(|run| run.speculation.drafted).sum();
            let accepted = of(*method).map(|run| run.speculation.accepted).sum();
            let lengths = of(*method).map(|run| run.speculation.mean_length);
            let length = median(lengths.filter(|length| *length > 0.0));
            format!(
                "{}, {}",
                percent(ratio(accepted, drafted)),
                number(length, 1)
            )
        });
        table.row(
            [category.to_owned(), tokens, again]
                .into_iter()
                .chain(cells),
        );
    }
    table.note(
        "Accepted of the drafted tokens, and tokens per drafted step. Repeated: tokens that end a sequence of eight which the \
         answer had before; where a model goes round in circles, every drafter is right.",
    );
    Some(table)
}
