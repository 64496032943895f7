//! A report as pictures: SVG files that are readable on light and dark pages.

mod canvas;
mod cost;
mod positions;
mod speedup;
mod steps;
mod theme;

use std::fs;
use std::path::{Path, PathBuf};

use crate::{BenchError, Report};

/// A chart: its file name and the drawing.
pub type Chart = (&'static str, String);

/// Draws everything that was measured.
///
/// # Errors
/// Where the drawing library fails.
pub fn charts(report: &Report) -> Result<Vec<Chart>, BenchError> {
    let drawn = [
        ("speedup.svg", speedup::draw(report)),
        ("acceptance.svg", positions::draw(report)),
        ("step.svg", steps::draw(report)),
        ("cost.svg", cost::draw(report)),
    ];
    let mut charts = Vec::new();
    for (name, chart) in drawn {
        if let Some(canvas) = chart {
            let svg = canvas
                .finish()
                .map_err(|problem| BenchError::Chart { name, problem })?;
            charts.push((name, svg));
        }
    }
    Ok(charts)
}

/// Writes the charts into a directory, which is made if it is not there, and returns their paths.
///
/// # Errors
/// Where a chart cannot be drawn or written.
pub fn write(report: &Report, directory: &Path) -> Result<Vec<PathBuf>, BenchError> {
    fs::create_dir_all(directory).map_err(BenchError::file("make", directory))?;
    let mut paths = Vec::new();
    for (name, svg) in charts(report)? {
        let path = directory.join(name);
        fs::write(&path, svg).map_err(BenchError::file("write", &path))?;
        paths.push(path);
    }
    Ok(paths)
}

/// What a chart is of, as its last line.
fn source(report: &Report) -> String {
    let quiet = if report.quiet.warnings().is_empty() {
        ""
    } else {
        "; the machine was not quiet"
    };
    let pair = &report.pair;
    let draft = match (&pair.draft, pair.exit_layer) {
        (Some(draft), _) => format!(", draft {:.0} M", draft.parameters as f64 / 1e6),
        (None, 0) => String::new(),
        (None, layers) => format!(", self-drafting after {layers} layers"),
    };
    format!(
        "{} {}, {:.0} M{draft}; {}, {} processors{quiet}",
        pair.target.name,
        pair.target.quantization,
        pair.target.parameters as f64 / 1e6,
        report.machine.processor,
        report.machine.cores,
    )
}
