//! Acceptance by position in the draft: a panel for each category.

use super::canvas::{Align, Canvas, Scale};
use super::theme::{MUTED, TEXT, of};
use crate::Report;
use crate::method::Method;
use crate::report::Chain;
use crate::tables::acceptance;

const WIDTH: u32 = 860;
const TOP: f64 = 108.0;
const COLUMNS: usize = 4;
const PANEL: (f64, f64) = (202.0, 196.0);
const POSITIONS: u32 = 8;

pub(super) fn draw(report: &Report) -> Option<Canvas> {
    let chains: Vec<&Chain> = report
        .chains
        .iter()
        .filter(|chain| chain.length >= POSITIONS)
        .collect();
    let mut categories = report.categories();
    categories.retain(|category| chains.iter().any(|chain| chain.category == *category));
    if categories.is_empty() {
        return None;
    }
    let lines = categories.len().div_ceil(COLUMNS);
    let height = TOP + lines as f64 * PANEL.1 + 44.0;
    let mut canvas = Canvas::new(
        (WIDTH, height as u32),
        "How deep drafts are right",
        "share of drafted steps in which the token at this position, and all before it, was accepted; nothing stops a draft",
    );
    let methods: Vec<Method> = [Method::Draft, Method::Own]
        .into_iter()
        .filter(|method| chains.iter().any(|chain| chain.method == *method))
        .collect();
    for (index, method) in methods.iter().enumerate() {
        let x = 30.0 + 190.0 * index as f64;
        canvas.dot((x, 80.0), 5, of(*method));
        let name = match method {
            Method::Draft => "draft model",
            _ => "the target's first layers",
        };
        canvas.text((x + 12.0, 80.0), name, Align::Left, TEXT);
    }
    let x = 30.0 + 190.0 * methods.len() as f64;
    let figures = "figures: acceptance of a token, given the one before";
    canvas.text((x, 80.0), figures, Align::Left, MUTED);
    for (index, category) in categories.iter().enumerate() {
        let corner = (
            24.0 + (index % COLUMNS) as f64 * PANEL.0,
            TOP + (index / COLUMNS) as f64 * PANEL.1,
        );
        let of_it = chains
            .iter()
            .copied()
            .filter(|chain| chain.category == *category);
        panel(
            &mut canvas,
            corner,
            category,
            &of_it.collect::<Vec<_>>(),
            &methods,
        );
    }
    let below = (f64::from(WIDTH) / 2.0, height - 46.0);
    canvas.text(below, "position in the draft", Align::Centre, MUTED);
    canvas.source(&super::source(report));
    Some(canvas)
}

fn panel(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    category: &str,
    chains: &[&Chain],
    methods: &[Method],
) {
    canvas.label((left + 34.0, top), category, 14, true, Align::Left, TEXT);
    let across = Scale::new(
        (1.0, f64::from(POSITIONS)),
        (left + 44.0, left + PANEL.0 - 20.0),
    );
    let up = Scale::new((0.0, 1.0), (top + 134.0, top + 18.0));
    canvas.y_axis(up, (left + 36.0, left + PANEL.0 - 12.0), |tick| {
        format!("{:.0} %", tick * 100.0)
    });
    for position in [1, 2, 4, 6, 8] {
        let x = across.at(f64::from(position));
        canvas.text((x, top + 148.0), position.to_string(), Align::Centre, MUTED);
    }
    let mut overall = left + PANEL.0 - 16.0;
    for method in methods.iter().rev() {
        let of_it = || {
            chains
                .iter()
                .copied()
                .filter(|chain| chain.method == *method)
        };
        let points: Vec<(f64, f64)> = (0..POSITIONS)
            .filter_map(|position| {
                let share = survival(of_it(), position as usize)?;
                Some((across.at(f64::from(position + 1)), up.at(share)))
            })
            .collect();
        if points.is_empty() {
            continue;
        }
        for point in &points {
            canvas.dot(*point, 3, of(*method));
        }
        canvas.line(points, 2, of(*method));
        if let Some(rate) = acceptance(of_it()) {
            canvas.text(
                (overall, top),
                format!("{rate:.2}"),
                Align::Right,
                of(*method),
            );
            overall -= 38.0;
        }
    }
}

/// Share of drafted steps that accepted the token at `position`, from 0.
fn survival<'a>(chains: impl Iterator<Item = &'a Chain>, position: usize) -> Option<f64> {
    let (mut accepted, mut steps) = (0, 0);
    for chain in chains {
        accepted += chain.accepted.get(position).copied().unwrap_or(0);
        steps += chain.drafted_steps;
    }
    (steps > 0).then(|| accepted as f64 / steps as f64)
}
