//! Where the time of a step goes, and what of it is paid for a token.

use super::canvas::{Align, Canvas, Scale};
use super::theme::{BLUE, GREEN, GREY, Ink, OCHRE, PURPLE, TEXT};
use crate::Report;
use crate::method::Method;
use crate::tables::{OPERATIONS, parts};

const WIDTH: u32 = 860;
const TOP: f64 = 128.0;
const ROW: f64 = 34.0;
const INKS: [Ink; 5] = [BLUE, PURPLE, OCHRE, GREEN, GREY];

pub(super) fn draw(report: &Report) -> Option<Canvas> {
    let rows: Vec<(Method, [f64; 5], f64)> = report
        .methods()
        .into_iter()
        .filter_map(|method| parts(report, method).map(|(parts, tokens)| (method, parts, tokens)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let bottom = TOP + rows.len() as f64 * ROW;
    let mut canvas = Canvas::new(
        (WIDTH, bottom as u32 + 82),
        "Where the time of a step goes",
        "left: milliseconds of a step; right: the same for each token that it commits, which is what counts",
    );
    for (index, (operation, ink)) in OPERATIONS.iter().zip(INKS).enumerate() {
        let x = 24.0 + 132.0 * index as f64;
        canvas.area([(x, 75.0), (x + 12.0, 87.0)], ink);
        canvas.text((x + 18.0, 81.0), *operation, Align::Left, TEXT);
    }
    let panels = [
        ("ms a step", (108.0, 440.0), false),
        ("ms a token", (500.0, 786.0), true),
    ];
    for (name, (left, right), by_token) in panels {
        let share = |tokens: f64| if by_token { tokens.max(1e-9) } else { 1.0 };
        let total = |parts: &[f64; 5], tokens: f64| parts.iter().sum::<f64>() / share(tokens);
        let most = rows
            .iter()
            .map(|(_, parts, tokens)| total(parts, *tokens))
            .fold(0.0, f64::max);
        let scale = Scale::new((0.0, most * 1.02), (left, right));
        let decimals = if most < 2.0 {
            2
        } else {
            usize::from(most < 20.0)
        };
        canvas.x_axis(scale, (TOP - 4.0, bottom), name, |tick| {
            format!("{tick:.decimals$}")
        });
        for (index, (method, parts, tokens)) in rows.iter().enumerate() {
            let middle = TOP + (index as f64 + 0.5) * ROW;
            if !by_token {
                canvas.label(
                    (left - 10.0, middle),
                    method.name(),
                    13,
                    true,
                    Align::Right,
                    TEXT,
                );
            }
            let mut from = 0.0;
            for (part, ink) in parts.iter().zip(INKS) {
                let to = from + part / share(*tokens);
                canvas.area(
                    [
                        (scale.at(from), middle - 10.0),
                        (scale.at(to), middle + 10.0),
                    ],
                    ink,
                );
                from = to;
            }
            let figure = if by_token {
                format!("{from:.2}")
            } else {
                format!("{from:.1}")
            };
            canvas.text((scale.at(from) + 6.0, middle), figure, Align::Left, TEXT);
        }
    }
    canvas.source(&super::source(report));
    Some(canvas)
}
