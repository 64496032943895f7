//! Cost of a step by its rows, and the acceptance at which drafting breaks even.

use super::canvas::{Align, Canvas, Scale};
use super::theme::{BLUE, GREEN, Ink, MUTED, ORANGE, PAPER, RED, TEXT};
use crate::Report;
use crate::claims::{CLAIMED_BREAK_EVEN, MOBILE_DRAFT_LENGTH, break_even, implied_break_even};
use crate::report::Chain;
use crate::stats::Spread;
use crate::tables::{acceptance, curve, draft_cost, drafter, step_cost};

const SIZE: (u32, u32) = (860, 470);
const TOP: f64 = 110.0;
const BOTTOM: f64 = 386.0;
const LEFT: (f64, f64) = (66.0, 400.0);
const RIGHT: (f64, f64) = (488.0, 720.0);
/// Counts that are written below.
const MARKS: [u32; 6] = [1, 2, 4, 8, 12, 16];
/// Least distance of labels that lie above each other.
const LABEL: f64 = 15.0;

pub(super) fn draw(report: &Report) -> Option<Canvas> {
    let curve = curve(report);
    let (most, _) = *curve.last().filter(|(rows, _)| *rows > 1)?;
    let mut canvas = Canvas::new(
        SIZE,
        "What rows cost, and when drafting breaks even",
        "drafting pays where acceptance lies above the curve on the right",
    );
    rows(&mut canvas, &curve, most);
    even(&mut canvas, report, &curve, most - 1);
    canvas.source(&super::source(report));
    Some(canvas)
}

fn rows(canvas: &mut Canvas, curve: &[(u32, Spread)], most: u32) {
    canvas.label(
        (LEFT.0 - 30.0, TOP - 22.0),
        "cost of a step, over a step of one row",
        13,
        true,
        Align::Left,
        TEXT,
    );
    let highest = curve
        .iter()
        .map(|(_, spread)| spread.high)
        .fold(2.0, f64::max)
        * 1.15;
    let across = Scale::new((1.0, f64::from(most)), (LEFT.0 + 8.0, LEFT.1 - 8.0));
    let up = Scale::new((0.0, highest), (BOTTOM, TOP));
    canvas.y_axis(up, LEFT, |tick| format!("{tick:.1}"));
    counts(canvas, across, most, "rows m");
    let end = highest.min(f64::from(most));
    canvas.dashes(
        (across.at(1.0), up.at(1.0)),
        (across.at(end), up.at(end)),
        RED,
    );
    let (x, y) = (across.at(end), up.at(end));
    canvas.text(
        (x + 8.0, y + 8.0),
        "each row costs a step",
        Align::Left,
        RED,
    );
    canvas.dashes(
        (across.at(1.0), up.at(1.0)),
        (across.at(f64::from(most)), up.at(1.0)),
        GREEN,
    );
    canvas.text(
        (LEFT.1 - 8.0, up.at(1.0) + 12.0),
        "rows are free",
        Align::Right,
        GREEN,
    );
    for (rows, spread) in curve {
        let x = across.at(f64::from(*rows));
        canvas.line(
            vec![(x, up.at(spread.low)), (x, up.at(spread.high))],
            4,
            BLUE,
        );
        canvas.dot((x, up.at(spread.median)), 3, BLUE);
    }
    let points = curve
        .iter()
        .map(|(rows, spread)| (across.at(f64::from(*rows)), up.at(spread.median)));
    canvas.line(points.collect(), 2, BLUE);
}

/// A point that somebody claims. Its name lies on paper, since the curve may run below it.
fn claim(canvas: &mut Canvas, (x, y): (f64, f64), name: &str, ink: Ink) {
    let width = name.chars().count() as f64 * 6.4;
    canvas.area([(x + 7.0, y - 7.0), (x + 11.0 + width, y + 7.0)], PAPER);
    canvas.dot((x, y), 5, ink);
    canvas.text((x + 9.0, y), name, Align::Left, ink);
}

/// Moves labels, which come from the top down, apart from each other, and as little as that takes from their places. All stay
/// between `top` and `bottom`: where acceptance is low, they would be pushed out of the picture. More than fit come closer.
fn apart(places: &[f64], (top, bottom): (f64, f64)) -> Vec<f64> {
    let gaps = places.len().saturating_sub(1).max(1) as f64;
    let distance = LABEL.min((bottom - top) / gaps);
    let mut labels = places.to_vec();
    let mut above = top - distance;
    for label in &mut labels {
        *label = label.max(above + distance);
        above = *label;
    }
    let mut below = bottom + distance;
    for label in labels.iter_mut().rev() {
        *label = label.min(below - distance);
        below = *label;
    }
    labels
}

/// A name that leaves room for a figure up to the edge of the picture.
fn shortened(name: &str) -> String {
    const MOST: usize = 12;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).chain(['…']).collect()
}

/// Writes counts below a panel, and what they count.
fn counts(canvas: &mut Canvas, across: Scale, most: u32, name: &str) {
    let marks = || {
        MARKS
            .into_iter()
            .filter(|mark| *mark <= most)
            .map(f64::from)
    };
    for mark in marks() {
        let at = (across.at(mark), BOTTOM + 14.0);
        canvas.text(at, format!("{mark:.0}"), Align::Centre, MUTED);
    }
    let middle = (across.at(1.0) + across.at(f64::from(most))) / 2.0;
    canvas.text((middle, BOTTOM + 34.0), name, Align::Centre, MUTED);
}

fn even(canvas: &mut Canvas, report: &Report, curve: &[(u32, Spread)], most: u32) {
    let Some((method, draft)) =
        drafter(report).and_then(|method| Some((method, draft_cost(report, method)?)))
    else {
        return;
    };
    canvas.label(
        (RIGHT.0 - 30.0, TOP - 22.0),
        "break-even acceptance",
        13,
        true,
        Align::Left,
        TEXT,
    );
    let across = Scale::new(
        (1.0, f64::from(most.max(2))),
        (RIGHT.0 + 8.0, RIGHT.1 - 8.0),
    );
    let up = Scale::new((0.0, 1.0), (BOTTOM, TOP));
    canvas.y_axis(up, RIGHT, |tick| format!("{tick:.1}"));
    counts(canvas, across, most, "tokens drafted in a step");
    let points: Vec<(f64, f64)> = (1..=most)
        .filter_map(|length| {
            let even = break_even(length as usize, step_cost(curve, draft, length)?)?;
            Some((across.at(f64::from(length)), up.at(even)))
        })
        .collect();
    for point in &points {
        canvas.dot(*point, 3, BLUE);
    }
    if points.len() > 1 {
        canvas.line(points, 2, BLUE);
    }
    let at = across.at(MOBILE_DRAFT_LENGTH as f64);
    let implied = format!("by its own numbers: {:.2}", implied_break_even());
    claim(
        canvas,
        (at, up.at(CLAIMED_BREAK_EVEN)),
        "write-up: 0.52",
        RED,
    );
    claim(canvas, (at, up.at(implied_break_even())), &implied, ORANGE);
    let chains = |category: &str| -> Vec<&Chain> {
        let all = report.chains.iter();
        all.filter(|chain| chain.method == method && chain.category == category)
            .collect()
    };
    let mut measured: Vec<(f64, &str)> = report
        .categories()
        .into_iter()
        .filter_map(|category| Some((acceptance(chains(category).into_iter())?, category)))
        .collect();
    measured.sort_by(|a, b| b.0.total_cmp(&a.0));
    canvas.text(
        (RIGHT.1 + 8.0, TOP - 22.0),
        "acceptance here",
        Align::Left,
        MUTED,
    );
    let places: Vec<f64> = measured.iter().map(|(rate, _)| up.at(*rate)).collect();
    let labels = apart(&places, (TOP, BOTTOM));
    for ((rate, category), label) in measured.into_iter().zip(labels) {
        let y = up.at(rate);
        canvas.line(
            vec![
                (RIGHT.1 - 8.0, y),
                (RIGHT.1 + 4.0, y),
                (RIGHT.1 + 14.0, label),
            ],
            1,
            GREEN,
        );
        canvas.text(
            (RIGHT.1 + 18.0, label),
            format!("{} {rate:.2}", shortened(category)),
            Align::Left,
            TEXT,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_in_the_picture_and_apart() {
        let low: Vec<f64> = (0..8)
            .map(|index| BOTTOM - 8.0 + f64::from(index))
            .collect();
        let high = vec![TOP; 8];
        let many: Vec<f64> = (0..60).map(|_| BOTTOM).collect();
        for places in [low, high, many, vec![BOTTOM], Vec::new()] {
            let labels = apart(&places, (TOP, BOTTOM));
            assert_eq!(labels.len(), places.len());
            let inside = |label: &f64| (TOP - 0.01..=BOTTOM + 0.01).contains(label);
            assert!(labels.iter().all(inside), "{labels:?}");
            let distance = LABEL.min((BOTTOM - TOP) / (places.len() as f64 - 1.0).max(1.0));
            let pairs = labels.windows(2);
            assert!(
                pairs
                    .clone()
                    .all(|pair| pair[1] - pair[0] > distance - 0.01),
                "{labels:?}"
            );
        }
        let free = [TOP, TOP + 100.0, BOTTOM];
        assert_eq!(
            apart(&free, (TOP, BOTTOM)),
            free,
            "nothing moves without need"
        );
    }
}
