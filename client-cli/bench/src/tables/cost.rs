//! Table 5: what a step costs by its rows, and the acceptance at which drafting breaks even.

use super::Table;
use super::format::{number, spread};
use crate::Report;
use crate::claims::{
    CLAIMED_BREAK_EVEN, MOBILE_DRAFT_LENGTH, break_even, implied_break_even, implied_speedup,
};
use crate::method::Method;
use crate::report::Chain;
use crate::stats::{Spread, median};

/// What steps of so many rows cost, over steps of one row in the same round.
pub(crate) fn curve(report: &Report) -> Vec<(u32, Spread)> {
    let most = report.steps.iter().map(|step| step.rows).max().unwrap_or(0);
    (1..=most)
        .filter_map(|rows| {
            let of_rows = report.row_costs().filter(|(other, _)| *other == rows);
            Some((rows, Spread::of(of_rows.map(|(_, cost)| cost))?))
        })
        .collect()
}

/// Seconds of a plain step, as a median.
fn plain_step(report: &Report) -> Option<f64> {
    let plain = report.steps.iter().filter(|step| step.rows == 1);
    median(plain.map(|step| step.seconds))
}

/// What drafting one token costs, over a plain step: the median over all chains of this drafter.
pub(crate) fn draft_cost(report: &Report, method: Method) -> Option<f64> {
    let one = plain_step(report)?;
    let chains = report
        .chains
        .iter()
        .filter(|chain| chain.method == method && chain.drafted > 0);
    Some(median(chains.map(|chain| chain.seconds / chain.drafted as f64))? / one)
}

/// Cost of a step that drafts so many tokens, over a plain step, drafting included.
pub(crate) fn step_cost(curve: &[(u32, Spread)], draft_cost: f64, length: u32) -> Option<f64> {
    let (_, rows) = curve.iter().find(|(rows, _)| *rows == length + 1)?;
    Some(rows.median + f64::from(length) * draft_cost)
}

/// The drafter whose chains measured the curve.
pub(crate) fn drafter(report: &Report) -> Option<Method> {
    let known = [Method::Draft, Method::Own];
    known
        .into_iter()
        .find(|method| report.chains.iter().any(|chain| chain.method == *method))
}

/// Acceptance of a token given that the one before stands, over all positions, from chains that cost did not stop.
pub(crate) fn acceptance<'a>(chains: impl Iterator<Item = &'a Chain>) -> Option<f64> {
    let (mut accepted, mut tried) = (0, 0);
    for chain in chains {
        let stood: u64 = chain.accepted.iter().sum();
        let whole = chain
            .accepted
            .get(chain.length as usize - 1)
            .copied()
            .unwrap_or(0);
        accepted += stood;
        // Each step tries one more than it accepts, unless the whole chain stood.
        tried += stood + chain.drafted_steps - whole.min(chain.drafted_steps);
    }
    super::format::ratio(accepted, tried)
}

/// Makes the table, where steps were measured by their rows.
pub(super) fn table(report: &Report) -> Option<Table> {
    let curve = curve(report);
    let method = drafter(report)?;
    let draft = draft_cost(report, method)?;
    let one = plain_step(report)?;
    let mut table = Table::new(
        "Table 5: cost of a step by its rows, and break-even acceptance",
        [
            "rows m",
            "C(m)/C(1)",
            "drafted",
            "step with drafting",
            "break-even",
        ],
    );
    for (rows, cost) in &curve {
        let length = rows - 1;
        let step = step_cost(&curve, draft, length).filter(|_| length > 0);
        let even = step.map(|step| {
            break_even(length as usize, step)
                .map_or_else(|| "never".to_owned(), |even| format!("{even:.2}"))
        });
        table.row([
            rows.to_string(),
            spread(Some(*cost), 2),
            length.to_string(),
            number(step, 2),
            even.unwrap_or_else(|| super::format::NOTHING.to_owned()),
        ]);
    }
    table.note(format!(
        "C(1) is {:.2} ms; drafting a token ({method}) takes {:.2} of that. Break-even: the acceptance of each token, given the \
         one before, at which chains of this length are as fast as plain decoding; tokens per step are then \
         (1 - a^(k+1)) / (1 - a) = C(k+1)/C(1) + k × {:.2}.",
        one * 1e3,
        draft,
        draft
    ));
    claims(&mut table, report, &curve, draft, method);
    Some(table)
}

fn claims(table: &mut Table, report: &Report, curve: &[(u32, Spread)], draft: f64, method: Method) {
    let here = step_cost(curve, draft, MOBILE_DRAFT_LENGTH as u32)
        .and_then(|cost| break_even(MOBILE_DRAFT_LENGTH, cost));
    table.note(format!(
        "Chains of {MOBILE_DRAFT_LENGTH}: {} here. The mobile write-up claims {CLAIMED_BREAK_EVEN:.2}; its own numbers (18 + \
         32 ms a step, 28.6 tok/s plain) imply {:.2}, and a gain of {:.2} at {CLAIMED_BREAK_EVEN:.2}: it counts one token where \
         a step with one accepted token commits two.",
        here.map_or_else(|| "never".to_owned(), |even| format!("{even:.2}")),
        implied_break_even(),
        implied_speedup(CLAIMED_BREAK_EVEN)
    ));
    let measured: Vec<String> = report
        .categories()
        .into_iter()
        .filter_map(|category| {
            let chains = report.chains.iter().filter(|chain| {
                chain.method == method && chain.category == category && chain.length > 0
            });
            Some(format!("{category} {:.2}", acceptance(chains)?))
        })
        .collect();
    if !measured.is_empty() {
        table.note(format!(
            "Acceptance here, of chains that nothing stops ({method}): {}.",
            measured.join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(length: u32, steps: u64, accepted: &[u64]) -> Chain {
        Chain {
            method: Method::Draft,
            category: "c".to_owned(),
            length,
            drafted_steps: steps,
            drafted: steps * u64::from(length),
            accepted: accepted.to_vec(),
            seconds: 0.0,
        }
    }

    #[test]
    fn acceptance_is_of_tokens_that_were_tried() {
        // Ten steps: two accept nothing, three one token, five both.
        assert_eq!(
            acceptance([chain(2, 10, &[8, 5])].iter()),
            Some(13.0 / 18.0)
        );
        assert_eq!(acceptance([chain(3, 4, &[])].iter()), Some(0.0));
        assert_eq!(acceptance([chain(2, 4, &[4, 4])].iter()), Some(1.0));
        assert_eq!(acceptance([].iter()), None);
    }
}
