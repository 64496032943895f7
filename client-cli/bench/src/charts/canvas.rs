//! A drawing in pixels, with the few marks that the charts are made of.

use plotters::backend::SVGBackend;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, ShapeStyle};

use super::theme::{GRID, Ink, MUTED, PAPER, TEXT, adapt};

const FONT: &str = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif";

/// Where a text lies to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// A mark to draw. Lengths are in pixels, from the upper left corner.
#[derive(Clone, Debug)]
enum Mark {
    Text {
        at: (f64, f64),
        text: String,
        size: u32,
        bold: bool,
        align: Align,
        ink: Ink,
    },
    Line {
        points: Vec<(f64, f64)>,
        width: u32,
        ink: Ink,
    },
    Box {
        corners: [(f64, f64); 2],
        ink: Ink,
    },
    Dot {
        at: (f64, f64),
        radius: u32,
        ink: Ink,
    },
}

/// A drawing.
#[derive(Clone, Debug)]
pub(super) struct Canvas {
    size: (u32, u32),
    marks: Vec<Mark>,
}

impl Canvas {
    /// Makes a drawing with a title, and a line below that says how to read it.
    pub(super) fn new(size: (u32, u32), title: &str, reading: &str) -> Self {
        let mut canvas = Self {
            size,
            marks: Vec::new(),
        };
        canvas.label((24.0, 30.0), title, 18, true, Align::Left, TEXT);
        canvas.label((24.0, 54.0), reading, 13, false, Align::Left, MUTED);
        canvas
    }

    pub(super) fn label(
        &mut self,
        at: (f64, f64),
        text: impl Into<String>,
        size: u32,
        bold: bool,
        align: Align,
        ink: Ink,
    ) {
        // Names of models may hold what no XML can.
        let text: String = text.into();
        let text = text.replace(
            |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'),
            "\u{fffd}",
        );
        self.marks.push(Mark::Text {
            at,
            text,
            size,
            bold,
            align,
            ink,
        });
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: impl Into<String>, align: Align, ink: Ink) {
        self.label(at, text, 12, false, align, ink);
    }

    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, width: u32, ink: Ink) {
        self.marks.push(Mark::Line { points, width, ink });
    }

    /// A line of dashes from one point to another.
    pub(super) fn dashes(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let point = |at: f64| {
            let part = (at / length).min(1.0);
            (
                from.0 + part * (to.0 - from.0),
                from.1 + part * (to.1 - from.1),
            )
        };
        let mut at = 0.0;
        while at < length {
            self.line(vec![point(at), point(at + 5.0)], 1, ink);
            at += 9.0;
        }
    }

    pub(super) fn area(&mut self, corners: [(f64, f64); 2], ink: Ink) {
        self.marks.push(Mark::Box { corners, ink });
    }

    pub(super) fn dot(&mut self, at: (f64, f64), radius: u32, ink: Ink) {
        self.marks.push(Mark::Dot { at, radius, ink });
    }

    /// What the chart is of, in the last line.
    pub(super) fn source(&mut self, text: &str) {
        let bottom = f64::from(self.size.1) - 18.0;
        self.label((24.0, bottom), text, 11, false, Align::Left, MUTED);
    }

    /// Vertical grid lines with numbers below, and a name of the axis in the middle.
    pub(super) fn x_axis(
        &mut self,
        scale: Scale,
        (top, bottom): (f64, f64),
        name: &str,
        write: impl Fn(f64) -> String,
    ) {
        for tick in scale.ticks() {
            let x = scale.at(tick);
            self.line(vec![(x, top), (x, bottom)], 1, GRID);
            self.text((x, bottom + 14.0), write(tick), Align::Centre, MUTED);
        }
        let middle = (scale.pixels.0 + scale.pixels.1) / 2.0;
        self.text((middle, bottom + 34.0), name, Align::Centre, MUTED);
    }

    /// Horizontal grid lines with numbers to the left.
    pub(super) fn y_axis(
        &mut self,
        scale: Scale,
        (left, right): (f64, f64),
        write: impl Fn(f64) -> String,
    ) {
        for tick in scale.ticks() {
            let y = scale.at(tick);
            self.line(vec![(left, y), (right, y)], 1, GRID);
            self.text((left - 8.0, y), write(tick), Align::Right, MUTED);
        }
    }

    /// Writes the drawing as SVG.
    pub(super) fn finish(&self) -> Result<String, String> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            let failed = |error: &dyn std::fmt::Display| error.to_string();
            area.fill(&PAPER.light()).map_err(|error| failed(&error))?;
            for mark in &self.marks {
                draw(&area, mark)?;
            }
            area.present().map_err(|error| failed(&error))?;
        }
        Ok(adapt(&svg))
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw(area: &Area<'_>, mark: &Mark) -> Result<(), String> {
    let pixel = |(x, y): (f64, f64)| (x.round() as i32, y.round() as i32);
    let done = match mark {
        Mark::Text {
            at,
            text,
            size,
            bold,
            align,
            ink,
        } => {
            let style = if *bold {
                FontStyle::Bold
            } else {
                FontStyle::Normal
            };
            let across = match align {
                Align::Left => HPos::Left,
                Align::Centre => HPos::Center,
                Align::Right => HPos::Right,
            };
            let style = (FONT, *size)
                .into_font()
                .style(style)
                .color(&ink.light())
                .pos(Pos::new(across, VPos::Center));
            area.draw_text(text, &style, pixel(*at))
        }
        Mark::Line { points, width, ink } => {
            let points: Vec<_> = points.iter().map(|point| pixel(*point)).collect();
            area.draw(&PathElement::new(points, ink.light().stroke_width(*width)))
        }
        Mark::Box { corners, ink } => {
            area.draw(&Rectangle::new(corners.map(pixel), ink.light().filled()))
        }
        Mark::Dot { at, radius, ink } => {
            let style: ShapeStyle = ink.light().filled();
            area.draw(&Circle::new(pixel(*at), *radius, style))
        }
    };
    done.map_err(|error| error.to_string())
}

/// A linear scale from values to pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    values: (f64, f64),
    pixels: (f64, f64),
}

impl Scale {
    pub(super) fn new(values: (f64, f64), pixels: (f64, f64)) -> Self {
        Self { values, pixels }
    }

    pub(super) fn at(self, value: f64) -> f64 {
        let part = (value - self.values.0) / (self.values.1 - self.values.0);
        self.pixels.0 + part.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// Round values, about one every 70 pixels.
    fn ticks(self) -> impl Iterator<Item = f64> {
        let (low, high) = self.values;
        let wanted = ((self.pixels.1 - self.pixels.0).abs() / 70.0).max(2.0);
        let rough = ((high - low) / wanted).max(f64::MIN_POSITIVE);
        let decade = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
        let step = steps
            .into_iter()
            .map(|step| step * decade)
            .find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        (first..=last).map(move |tick| tick as f64 * step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = |values, pixels| {
            let ticks = Scale::new(values, (0.0, pixels)).ticks();
            ticks
                .map(|tick| format!("{tick:.1}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(ticks((0.0, 4.0), 300.0), "0.0 1.0 2.0 3.0 4.0");
        assert_eq!(ticks((0.5, 1.2), 300.0), "0.6 0.8 1.0 1.2");
        assert_eq!(ticks((0.0, 17.0), 350.0), "0.0 5.0 10.0 15.0");
        assert!(ticks((0.0, 0.0), 350.0).len() <= 3, "a range of nothing");
    }

    #[test]
    fn text_is_escaped() {
        let mut canvas = Canvas::new((100, 100), "a < b & c", "\u{1b}]0;x\u{7}");
        canvas.dot((1.0, 2.0), 3, TEXT);
        canvas.dashes((0.0, 0.0), (20.0, 0.0), GRID);
        let svg = canvas.finish().unwrap();
        assert!(
            svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(!svg.chars().any(|c| c.is_control() && c != '\n'), "{svg}");
    }
}
