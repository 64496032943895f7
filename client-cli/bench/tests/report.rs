//! A report survives its file, and everything in it is shown.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;

use common::{CATEGORIES, report, speedup};
use tandem_bench::energy::Source;
use tandem_bench::tables::{Table, markdown, tables, terminal};
use tandem_bench::{BenchError, Method, Report, charts, compare};

fn table<'a>(tables: &'a [Table], title: &str) -> &'a Table {
    tables
        .iter()
        .find(|table| table.title.starts_with(title))
        .unwrap_or_else(|| panic!("no table is called {title}"))
}

fn cell<'a>(table: &'a Table, row: &str, column: &str) -> &'a str {
    let column = table
        .header
        .iter()
        .position(|name| name.starts_with(column))
        .unwrap();
    let row = table.rows.iter().find(|cells| cells[0] == row).unwrap();
    &row[column]
}

/// A text without its line breaks.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_report_survives_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let mut report = report();
    for energy in [
        Source::Rapl,
        Source::Powermetrics,
        Source::Absent("why".to_owned()),
    ] {
        report.energy = energy;
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
    }
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("report.json");
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        match Report::read(&path) {
            Err(BenchError::Report { problem, .. }) => problem,
            other => panic!("{text}: {other:?}"),
        }
    };
    assert!(refused("{}").contains("schema"));
    assert!(refused("not JSON").contains("expected"));
    assert!(refused("{\"schema\": 99}").contains("format 99"));
    assert!(refused("{\"schema\": 1}").contains("missing field"));
    let missing = Report::read(&directory.path().join("none.json"));
    assert!(matches!(missing, Err(BenchError::File { .. })));
}

#[test]
fn tables_have_the_figures_of_the_samples() {
    let report = report();
    let tables = tables(&report);
    let long = table(&tables, "Table 1");
    assert_eq!(cell(long, "none", "cold TTFT"), "500");
    assert_eq!(cell(long, "draft", "sustained"), "150.0");
    assert_eq!(cell(long, "draft", "accepted"), "50 %");
    assert_eq!(cell(long, "none", "accepted"), "–");
    assert_eq!(cell(long, "self", "headroom"), "624 MiB");
    assert_eq!(cell(long, "none", "J/token"), "0.20");

    let speed = table(&tables, "Table 2:");
    for (category, method) in CATEGORIES
        .iter()
        .flat_map(|category| [(category, Method::Draft), (category, Method::Own)])
    {
        let ratio = format!("{:.2}", speedup(method));
        let text = cell(speed, category, method.name());
        assert!(
            text.starts_with(&ratio),
            "slower rounds are slower for all: {text}"
        );
    }
    assert_eq!(cell(speed, "all", "self"), "2.00");
    assert_eq!(cell(speed, "code", "none tok/s"), "90.9");

    let memory = table(&tables, "Table 3");
    assert_eq!(cell(memory, "draft", "draft weights"), "25 MiB");
    assert_eq!(cell(memory, "none", "draft KV"), "0");
    assert_eq!(cell(memory, "draft", "over none"), "+23.3 %");

    let steps = table(&tables, "Table 4");
    assert_eq!(cell(steps, "verification", "none"), "6.000 (27 %)");
    assert_eq!(cell(steps, "tokens per step", "draft"), "2.00");
    assert_eq!(cell(steps, "draft forward", "write-up"), "0.800 (12 %)");

    let cost = table(&tables, "Table 5");
    assert_eq!(cell(cost, "1", "C(m)"), "1.00 (1.00–1.00)");
    assert_eq!(cell(cost, "5", "C(m)"), "1.40 (1.40–1.40)");
    // Four drafts at a tenth of a step each: 1.8 plain steps, and 1 + a + a² + a³ + a⁴ = 1.8 at a = 0.46.
    assert_eq!(cell(cost, "5", "step with drafting"), "1.80");
    assert_eq!(cell(cost, "5", "break-even"), "0.46");
    let notes = cost.notes.join(" ");
    assert!(notes.contains("0.52") && notes.contains("0.30"), "{notes}");
}

#[test]
fn a_reader_is_told_what_may_mislead() {
    let mut report = report();
    let text = unbroken(&terminal(&report));
    assert!(
        text.contains("all are the same, token for token")
            && text.contains("The machine was quiet.")
    );
    assert!(text.contains("tree is not measured: a test leaves it out"));
    report
        .texts
        .different
        .push("draft, prompt 3 (code)".to_owned());
    report.quiet.others_meanwhile = Some(0.3);
    report.energy = Source::Absent("no counters".to_owned());
    for text in [terminal(&report), markdown(&report)] {
        let text = unbroken(&text);
        for part in [
            "TEXTS DIFFER",
            "draft, prompt 3 (code)",
            "WAS NOT QUIET",
            "30 %",
            "No energy: no counters.",
        ] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
    }
}

#[test]
fn what_was_not_measured_is_left_out() {
    let mut report = report();
    (report.runs, report.long, report.memory) = (Vec::new(), Vec::new(), Vec::new());
    (report.steps, report.chains) = (Vec::new(), Vec::new());
    assert_eq!(tables(&report), []);
    assert_eq!(charts::charts(&report).unwrap(), []);
    assert!(!terminal(&report).contains("Table") && !markdown(&report).contains("Table"));
}

#[test]
fn charts_are_sound_documents() {
    let speed = sound_charts(&report()).swap_remove(0).1;
    assert!(
        speed.contains("1.50") && speed.contains("2.00"),
        "medians are written"
    );
}

#[test]
fn charts_hold_what_they_say_where_hardly_anything_is_accepted() {
    let mut low = report();
    // More kinds of text than have room beside one another, all at the bottom, and one with a long name.
    let names = [
        "code",
        "prose",
        "json",
        "lists",
        "a kind of text with a long name",
        "tables",
    ];
    for sample in low.runs.clone() {
        for name in names {
            let category = name.to_owned();
            let mut run = sample.clone();
            run.category = category;
            low.runs.push(run);
        }
    }
    for chain in low.chains.clone() {
        for name in names {
            let mut chain = chain.clone();
            chain.category = name.to_owned();
            low.chains.push(chain);
        }
    }
    for chain in &mut low.chains {
        chain.accepted.fill(0);
    }
    sound_charts(&low);
}

/// Draws all charts, each of which has to be a document whose texts lie inside.
fn sound_charts(report: &Report) -> Vec<charts::Chart> {
    let charts = charts::charts(report).unwrap();
    let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["speedup.svg", "acceptance.svg", "step.svg", "cost.svg"]
    );
    for (name, svg) in &charts {
        let document =
            roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
        let root = document.root_element();
        let size = |attribute| {
            root.attribute(attribute)
                .and_then(|value| value.parse::<f64>().ok())
                .unwrap()
        };
        let (width, height) = (size("width"), size("height"));
        let texts: Vec<&str> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .filter_map(|node| node.text())
            .collect();
        assert!(
            texts.iter().any(|text| text.contains("target & more")),
            "{name} says what it is of"
        );
        for node in document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
        {
            let at = |attribute| {
                node.attribute(attribute)
                    .and_then(|value| value.parse::<f64>().ok())
                    .unwrap()
            };
            let length = node.text().unwrap_or_default().chars().count() as f64;
            // What a narrow letter takes, so that this finds what is clipped in any font.
            let reach = length * at("font-size") * 0.42;
            let end = match node.attribute("text-anchor") {
                Some("end") => at("x") - reach,
                Some("middle") => at("x") + reach / 2.0,
                _ => at("x") + reach,
            };
            assert!(
                (0.0..=width).contains(&at("x"))
                    && (0.0..=width).contains(&end)
                    && (0.0..=height - 4.0).contains(&at("y")),
                "{name}: {node:?}"
            );
            if name == &"cost.svg" && !node.text().unwrap_or_default().contains("target") {
                assert!(at("y") < height - 36.0, "over the last line: {node:?}");
            }
        }
    }
    charts
}

#[test]
fn a_comparison_names_what_changed_and_nothing_else() {
    let (old, mut new) = (report(), report());
    assert_eq!(compare::table(&old, &new).rows, Vec::<Vec<String>>::new());
    for run in new
        .runs
        .iter_mut()
        .filter(|run| run.method == Method::Draft && run.category == "code")
    {
        run.decode /= 1.2;
    }
    let table = compare::table(&old, &new);
    let changed: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(changed, ["speed-up, code, draft", "speed-up, all, draft"]);
    assert_eq!(table.rows[0][3], "1.20");
    new.machine.cores = 4;
    assert!(
        compare::table(&old, &new)
            .notes
            .join(" ")
            .contains("machines differ")
    );
}
