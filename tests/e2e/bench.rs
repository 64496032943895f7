//! `tandem bench` on the default pair: what it prints and writes, and that it leaves nothing running.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tandem_tests::Home;

use crate::{TANDEM, default_daemon, home};

/// As little as can be measured.
const TINY: [&str; 8] = [
    "bench",
    "--quick",
    "--rounds",
    "1",
    "--tokens",
    "12",
    "--category",
    "code,story",
];

fn bench(home: &Home, arguments: &[&str]) -> Output {
    let mut command = home.command();
    command.args(TINY).args(arguments);
    command.output().expect("tandem can be run")
}

/// Output without its line breaks, which depend on widths.
fn text(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).expect("output is UTF-8");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_says(output: &[u8], parts: &[&str]) {
    let output = text(output);
    for part in parts {
        assert!(output.contains(part), "{part} is missing in:\n{output}");
    }
}

/// Processes other than this one that know a home.
#[cfg(target_os = "linux")]
fn left_behind(home: &Home) -> Vec<String> {
    let wanted = format!("TANDEM_HOME={}", home.path().display());
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| {
            let environment = fs::read(process.path().join("environ")).ok()?;
            let knows = environment
                .split(|byte| *byte == 0)
                .any(|entry| entry == wanted.as_bytes());
            knows.then(|| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default())
        })
        .collect()
}

#[cfg(target_os = "linux")]
fn assert_nothing_left(home: &Home) {
    assert_eq!(left_behind(home), Vec::<String>::new());
}

#[cfg(not(target_os = "linux"))]
fn assert_nothing_left(_: &Home) {}

fn assert_charts(directory: &Path) {
    for name in ["speedup.svg", "acceptance.svg", "step.svg", "cost.svg"] {
        let svg = fs::read_to_string(directory.join(name)).unwrap();
        let document = roxmltree::Document::parse(&svg).expect("a chart is well-formed XML");
        assert!(
            document
                .root_element()
                .has_tag_name(("http://www.w3.org/2000/svg", "svg")),
            "{name}"
        );
        let texts = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        assert!(texts.count() > 10, "{name} says something");
    }
}

#[test]
fn every_table_and_chart_is_filled_by_measuring() {
    let home = home();
    let file = |name: &str| home.path().join(name).display().to_string();
    let (json, markdown, plots) = (file("r.json"), file("r.md"), file("plots"));
    let output = bench(
        &home,
        &["--json", &json, "--markdown", &markdown, "--plot", &plots],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let parts = [
        "Table 1:",
        "Table 2:",
        "Table 3:",
        "Table 4:",
        "Table 5:",
        "all are the same, token for token",
    ];
    assert_says(&output.stdout, &parts);
    let written = fs::read_to_string(&markdown).unwrap();
    for part in parts {
        assert!(written.contains(part), "{part} is missing in:\n{written}");
    }
    assert_charts(Path::new(&plots));

    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let list = |name: &str| {
        report[name]
            .as_array()
            .unwrap_or_else(|| panic!("{name} is a list"))
    };
    assert_eq!(
        list("absent").len(),
        0,
        "the default pair has everything: {report}"
    );
    assert_eq!(list("runs").len(), 2 * 7);
    assert_eq!(list("long").len(), 7);
    let rows: Vec<u64> = list("steps")
        .iter()
        .map(|step| step["rows"].as_u64().unwrap())
        .collect();
    for wanted in [1, 2, 5, 9] {
        assert!(
            rows.contains(&wanted),
            "a step of {wanted} rows was measured: {rows:?}"
        );
    }
    let memory = |drafts: &str, figure: &str| {
        let of = |memory: &&Value| memory["serving"]["drafts"] == drafts;
        list("memory").iter().find(of).unwrap()[figure]
            .as_u64()
            .unwrap()
    };
    assert_eq!(memory("nothing", "draft_weights"), 0);
    assert!(memory("model", "draft_weights") > memory("own", "draft_weights"));
    assert!(memory("nothing", "kv") > 0 && memory("nothing", "peak_footprint") > 0);
    for run in list("runs") {
        let drafted = run["speculation"]["drafted"].as_u64().unwrap();
        assert!(run["method"] != "none" || drafted == 0, "{run}");
        assert!(
            run["speculation"]["verify"].as_f64().unwrap() > 0.0,
            "{run}"
        );
    }

    let again = home
        .command()
        .args(["bench", "--from", &json, "--compare", &json])
        .output()
        .unwrap();
    assert!(again.status.success(), "{again:?}");
    assert!(
        text(&again.stdout).contains("Changes beyond noise"),
        "{again:?}"
    );
    assert_nothing_left(&home);
}

#[tokio::test]
async fn a_running_daemon_is_measured_as_it_is() {
    let daemon = default_daemon().await;
    let own = daemon.home().path().join("own.txt");
    fs::write(
        &own,
        "--- greetings\nSay hello to a cat.\n---\nSay hello to a dog.\n",
    )
    .unwrap();
    let own = own.display().to_string();
    let arguments = [
        "bench",
        "--quick",
        "--rounds",
        "1",
        "--tokens",
        "12",
        "--running",
        "--tables",
        "2",
        "--prompts",
        &own,
    ];
    let output = daemon.tandem(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let parts = [
        "self is not measured",
        "does not draft for itself",
        "greetings",
        "the running daemon",
    ];
    assert_says(&output.stdout, &parts);
    assert!(
        !text(&output.stdout).contains("Table 5"),
        "only what was asked for"
    );
}

#[test]
fn an_interrupt_ends_the_private_daemons() {
    let home = home();
    let mut child = home
        .command()
        .args(["bench", "--rounds", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let begun = told.find(|line| line.contains("asking the long prompt"));
    assert!(
        begun.is_some(),
        "it ended before it measured: {:?}",
        child.wait()
    );
    let interrupt = Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_nothing_left(&home);
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let refused = |arguments: &[&str]| {
        let output = Home::new(TANDEM)
            .command()
            .arg("bench")
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let (code, message) = refused(&["--category", "nonesuch"]);
    assert!(
        code == Some(2) && message.contains("extraction"),
        "{message}"
    );
    let (code, message) = refused(&["--pair", "nonesuch"]);
    assert!(code == Some(2) && message.contains("nonesuch"), "{message}");
    let (code, message) = refused(&["--methods", "magic"]);
    assert!(
        code == Some(2) && message.contains("self-tree"),
        "{message}"
    );
    let (code, message) = refused(&["--from", "/dev/null"]);
    assert!(
        code == Some(2) && message.contains("no report"),
        "{message}"
    );
    let (code, message) = refused(&["--running"]);
    assert_eq!(code, Some(69), "{message}");
    let (code, message) = refused(&["--target", "/nonesuch.gguf", "--tables", "2"]);
    assert!(
        code == Some(78) && message.contains("nonesuch"),
        "{message}"
    );
}
