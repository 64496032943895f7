//! Speed over plain decoding: a row for each method in each category, with quartiles.

use super::canvas::{Align, Canvas, Scale};
use super::theme::{BAND, MUTED, TEXT, of};
use crate::Report;
use crate::method::Method;
use crate::stats::Spread;
use crate::tables::{overall, speedups};

const WIDTH: u32 = 860;
const TOP: f64 = 92.0;
const LEFT: f64 = 214.0;
const RIGHT: f64 = 820.0;
const ROW: f64 = 17.0;
const GAP: f64 = 12.0;

/// A row: method, and what is known of it.
type Row = (Method, Spread);

pub(super) fn draw(report: &Report) -> Option<Canvas> {
    let groups = groups(report);
    let rows: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
    if rows == 0 {
        return None;
    }
    let bottom = TOP + rows as f64 * ROW + groups.len() as f64 * GAP;
    let all = || {
        groups
            .iter()
            .flat_map(|(_, rows)| rows)
            .map(|(_, spread)| spread)
    };
    let most = all().map(|spread| spread.high).fold(1.2, f64::max);
    let least = all().map(|spread| spread.low).fold(0.8, f64::min);
    // Room for figures on both sides.
    let room = (most - least) * 0.08;
    let scale = Scale::new(((least - room).max(0.0), most + room), (LEFT, RIGHT));
    let mut canvas = Canvas::new(
        (WIDTH, bottom as u32 + 78),
        "Speed over plain decoding, by kind of text",
        "dot: median (all: geometric mean over prompts); bar: quartiles over prompts and rounds",
    );
    let mut y = TOP;
    for (index, (_, rows)) in groups.iter().enumerate() {
        let height = rows.len() as f64 * ROW + GAP;
        if index % 2 == 0 {
            canvas.area([(24.0, y), (RIGHT + 16.0, y + height)], BAND);
        }
        y += height;
    }
    canvas.x_axis(
        scale,
        (TOP, bottom),
        "times as fast as plain decoding",
        |tick| format!("{tick:.1}×"),
    );
    let plain = scale.at(1.0);
    canvas.line(vec![(plain, TOP - 6.0), (plain, bottom)], 2, MUTED);
    canvas.text((plain - 6.0, TOP - 12.0), "slower", Align::Right, MUTED);
    canvas.text((plain + 6.0, TOP - 12.0), "faster", Align::Left, MUTED);
    let mut y = TOP;
    for (name, rows) in &groups {
        let middle = y + (rows.len() as f64 * ROW + GAP) / 2.0;
        canvas.label((36.0, middle), name.as_str(), 14, true, Align::Left, TEXT);
        y += GAP / 2.0;
        for row in rows {
            draw_row(&mut canvas, scale, y + ROW / 2.0, *row);
            y += ROW;
        }
        y += GAP / 2.0;
    }
    canvas.source(&super::source(report));
    Some(canvas)
}

fn draw_row(canvas: &mut Canvas, scale: Scale, y: f64, (method, spread): Row) {
    let ink = of(method);
    canvas.text((LEFT - 10.0, y), method.name(), Align::Right, ink);
    canvas.line(
        vec![(scale.at(spread.low), y), (scale.at(spread.high), y)],
        4,
        ink,
    );
    canvas.dot((scale.at(spread.median), y), 5, ink);
    let figure = format!("{:.2}", spread.median);
    let end = scale.at(spread.high).max(scale.at(spread.median) + 3.0);
    // The line of plain decoding must not run through the figure.
    let plain = scale.at(1.0);
    if (end..end + 36.0).contains(&plain) {
        let begin = scale.at(spread.low).min(scale.at(spread.median) - 3.0);
        canvas.text((begin - 8.0, y), figure, Align::Right, TEXT);
    } else {
        canvas.text((end + 8.0, y), figure, Align::Left, TEXT);
    }
}

/// Categories with the rows of their methods, then all together.
fn groups(report: &Report) -> Vec<(String, Vec<Row>)> {
    let methods: Vec<Method> = report
        .methods()
        .into_iter()
        .filter(|method| *method != Method::None)
        .collect();
    let rows = |category: Option<&str>| -> Vec<Row> {
        let row = |method: &Method| {
            let ratios = speedups(report, *method, category)
                .into_iter()
                .map(|(_, ratio)| ratio);
            let mut spread = Spread::of(ratios)?;
            if category.is_none() {
                spread.median = overall(report, *method, None)?;
            }
            Some((*method, spread))
        };
        methods.iter().filter_map(row).collect()
    };
    let mut groups: Vec<(String, Vec<Row>)> = report
        .categories()
        .into_iter()
        .map(|category| (category.to_owned(), rows(Some(category))))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    if groups.len() > 1 {
        groups.push(("all".to_owned(), rows(None)));
    }
    groups
}
