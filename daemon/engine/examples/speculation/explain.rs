//! Where a request's time went, and what the policy thought of it.

use std::collections::BTreeMap;

use tandem_engine::engine::Engine;
use tandem_engine::policy::StepReport;

use crate::common::median;

/// One answer: its decoding steps after the first token, and the seconds of all of them by the clock on the wall.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) seconds: f64,
    pub(crate) steps: Vec<StepReport>,
}

fn ms(seconds: f64) -> f64 {
    1e3 * seconds
}

/// Milliseconds by rows, as `rows×count:median`, of the steps that `which` names.
fn by_rows(steps: &[StepReport], which: impl Fn(&StepReport) -> bool) -> String {
    let mut rows: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for step in steps.iter().filter(|step| which(step)) {
        rows.entry(step.rows).or_default().push(ms(step.step()));
    }
    let words = rows.into_iter().map(|(rows, mut times)| {
        let count = times.len();
        format!("{rows}×{count}:{:.2}", median(&mut times))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Prints where one answer's time went.
pub(crate) fn answer(name: &str, answer: &Answer) {
    let steps = &answer.steps;
    let count = steps.len().max(1) as f64;
    let mean = |of: fn(&StepReport) -> f64| steps.iter().map(of).sum::<f64>() / count;
    let number = |which: fn(&StepReport) -> bool| steps.iter().filter(|step| which(step)).count();
    println!(
        "  {name}: {} steps, {} drafted, {} cold, {} with a cold draft, {} went ahead; a step: {:.2} tokens (expected {:.2}), {:.1} rows, {:.1} rounds",
        steps.len(),
        number(|step| step.drafted > 0),
        number(|step| step.cold),
        number(|step| step.cold_draft),
        number(|step| step.ahead),
        mean(|step| step.committed as f64),
        mean(|step| step.expected_tokens),
        mean(|step| step.rows as f64),
        mean(|step| step.rounds as f64),
    );
    let parts = [
        mean(|step| step.verify),
        mean(|step| step.draft),
        mean(|step| step.accept),
        mean(|step| step.cache_update),
    ];
    let rest = answer.seconds / count - parts.iter().sum::<f64>();
    println!(
        "    ms a step: target {:.2}, draft {:.2}, choice {:.2}, caches {:.2}, rest {:.2}; drafts were expected to add {:.2} to {:.2} and added {:.2}",
        ms(parts[0]),
        ms(parts[1]),
        ms(parts[2]),
        ms(parts[3]),
        ms(rest),
        ms(mean(|step| step.expected_extra)),
        ms(mean(|step| step.plain)),
        ms(mean(|step| step.draft + step.step() - step.plain)),
    );
    println!(
        "    rows×steps:ms {}",
        by_rows(steps, |step| !step.cold && !step.ahead)
    );
    if number(|step| step.cold) > 0 {
        println!("    cold ones     {}", by_rows(steps, |step| step.cold));
    }
    if number(|step| step.ahead) > 0 {
        println!("    ahead         {}", by_rows(steps, |step| step.ahead));
    }
}

/// Prints every step of an answer.
pub(crate) fn steps(steps: &[StepReport]) {
    println!("    rows rounds tokens (expected) draft ms (cold) step ms (cold) expected added");
    for step in steps {
        let cold = |cold: bool| if cold { '*' } else { ' ' };
        println!(
            "    {:>4} {:>6} {:>6} {:>10.2} {:>8.2} {:>6} {:>7.2} {:>6} {:>8.2} {:>5.2}{}",
            step.rows,
            step.rounds,
            step.committed,
            step.expected_tokens,
            ms(step.draft),
            cold(step.cold_draft),
            ms(step.step()),
            cold(step.cold),
            ms(step.expected_extra),
            ms(step.draft + step.step() - step.plain),
            if step.ahead { " ahead" } else { "" },
        );
    }
}

/// Prints what the policy knows of the cost of steps by their rows, beside the medians of all steps seen whose device had
/// nothing to prepare.
pub(crate) fn costs(engine: &Engine, seen: &[StepReport]) {
    println!("cost of a step: positions rows known ms (samples), median ms of steps seen (steps)");
    for known in engine.step_costs() {
        let near = |step: &&StepReport| {
            let positions = step.positions.max(256) as f64;
            let bucket = known.positions as f64;
            step.rows == known.rows
                && !step.cold
                && !step.ahead
                && (positions / bucket).log2().abs() <= 0.5
        };
        let mut near: Vec<f64> = seen.iter().filter(near).map(StepReport::step).collect();
        let count = near.len();
        println!(
            "  {:>6} {:>3} {:>8.3} ({:>4}) {:>8.3} ({count})",
            known.positions,
            known.rows,
            ms(known.seconds),
            known.samples,
            ms(median(&mut near)),
        );
    }
    let drafted = seen
        .iter()
        .filter(|step| step.rounds > 0 && !step.cold_draft && !step.ahead);
    let rounds = drafted.map(|step| ms(step.draft) / step.rounds as f64);
    let mut rounds: Vec<f64> = rounds.collect();
    println!("a forward of the draft: {:.3} ms", median(&mut rounds));
}
