//! `tandem doctor`: with and without a daemon, and where something is wrong.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tandem_tests::Home;
use tandem_tests::grpc::status;

use crate::{TANDEM, default_daemon, home};

/// Runs the doctor of a home, apart from services of the user's own.
fn doctor(home: &Home, arguments: &[&str]) -> Output {
    command(home, arguments)
        .output()
        .expect("tandem can be run")
}

fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command();
    command
        .arg("doctor")
        .args(arguments)
        .env("XDG_CONFIG_HOME", home.path().join("no-services"));
    command
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("output is UTF-8")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The finding of a check, and its mark.
fn find<'a>(report: &'a Value, section: &str, check: &str) -> (&'a Value, &'a str) {
    let findings = report["findings"].as_array().unwrap();
    let finding = findings
        .iter()
        .find(|finding| finding["section"] == section && finding["check"] == check)
        .unwrap_or_else(|| panic!("no {section}/{check} in {report:#}"));
    (finding, finding["mark"].as_str().unwrap())
}

fn mark<'a>(report: &'a Value, section: &str, check: &str) -> &'a str {
    find(report, section, check).1
}

fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap())
        .flat_map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path()),
            false => BTreeSet::from([entry.path()]),
        })
        .collect()
}

#[test]
fn without_a_daemon_it_checks_everything_else_and_leaves_nothing() {
    let home = home();
    let scratch = tempfile::tempdir().unwrap();
    let before = files(home.path());
    let output = command(&home, &["--json"])
        .env("TMPDIR", scratch.path())
        .output()
        .unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["failed"], 0);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    for (section, check) in [
        ("machine", "system"),
        ("machine", "bandwidth"),
        ("devices", "auto"),
        ("devices", "cpu"),
        ("kernels", "portable"),
        ("memory", "footprint"),
        ("configuration", "file"),
        ("configuration", "pair default"),
        ("socket", "directory"),
        ("socket", "daemon"),
    ] {
        let (finding, mark) = find(&report, section, check);
        assert!(["ok", "warning"].contains(&mark), "{finding:#}");
    }
    // Not every machine has a manager that runs for this user, and then there is nothing to look at or to recommend.
    let (registration, mark) = find(&report, "service", "registration");
    let said = registration["message"].as_str().unwrap();
    match mark {
        "skipped" => assert!(!said.contains("service install"), "{registration:#}"),
        _ => assert_eq!(mark, "ok", "{registration:#}"),
    }
    let (daemon, _) = find(&report, "socket", "daemon");
    assert!(daemon["message"].as_str().unwrap().contains("none runs"));
    let (cpu, _) = find(&report, "devices", "cpu");
    assert_eq!(cpu["values"]["batch_invariant"], true);
    assert_eq!(files(home.path()), before, "files are as they were");
    assert_eq!(files(scratch.path()), BTreeSet::new());
    assert!(!home.socket().exists());
}

#[test]
fn the_page_has_a_line_per_check_and_hides_the_home_directory() {
    let home = home();
    let output = command(&home, &[])
        .env("HOME", home.path())
        .env("HF_HOME", home.path().join("hub"))
        .output()
        .unwrap();
    let page = text(&output);
    // The hub's cache is looked for in that home as well, where nothing is.
    assert!(page.contains("is not on this machine yet") && page.contains("tandem pull"));
    assert_eq!(
        output.status.code(),
        Some(0),
        "a model can be fetched: {page}"
    );
    assert!(page.contains("\nkernels\n  ok       portable: "), "{page}");
    let shown = home.path().to_str().unwrap();
    assert!(
        page.contains("~/run/tandem.sock") && !page.contains(shown),
        "{page}"
    );
}

#[tokio::test]
async fn a_running_daemon_is_described_and_not_disturbed() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let before = status(&mut client).await;
    let report = json(&doctor(daemon.home(), &["--json"]));
    let (finding, mark_of_daemon) = find(&report, "socket", "daemon");
    assert_eq!(mark_of_daemon, "ok", "{report:#}");
    assert_eq!(finding["values"]["pid"], daemon.pid());
    assert_eq!(mark(&report, "socket", "version"), "ok");
    let (pair, _) = find(&report, "socket", "pair default");
    assert_eq!(pair["values"]["residency"], "warm");
    let after = status(&mut client).await;
    assert_eq!(after.pid, before.pid);
    assert_eq!(after.totals, before.totals);
    assert!(after.reload.is_none(), "nothing was read again");
}

#[tokio::test]
async fn a_socket_that_was_left_behind_is_told_and_stays() {
    let mut daemon = default_daemon().await;
    daemon.kill();
    let report = json(&doctor(daemon.home(), &["--json"]));
    let (finding, mark) = find(&report, "socket", "daemon");
    assert_eq!(mark, "warning", "{finding:#}");
    assert!(finding["advice"].is_string());
    assert!(daemon.home().socket().exists());
}

#[test]
fn what_is_wrong_makes_the_exit_code_1() {
    let home = home().config("[pairs.x]\ntarget = \"./gone.gguf\"\ndraft = \"none\"\n");
    let output = doctor(&home, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(
        mark(&report, "configuration", "pair x"),
        "failed",
        "{report:#}"
    );

    let home = Home::new(TANDEM).config("[server]\nmax_queu = 3\n");
    let output = doctor(&home, &[]);
    assert_eq!(output.status.code(), Some(1));
    let page = text(&output);
    assert!(
        page.contains("FAILED   file: ") && page.contains("max_queu"),
        "{page}"
    );
    assert!(page.ends_with("check failed\n") || page.contains("1 check failed, "));
}

#[test]
fn a_socket_path_that_is_too_long_fails_and_the_rest_is_checked() {
    let home = Home::new(TANDEM);
    let long = home.path().join("x".repeat(120));
    let output = command(&home, &["--json"])
        .env("TANDEM_SOCKET", long)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let (finding, mark_of_paths) = find(&report, "socket", "paths");
    assert_eq!(mark_of_paths, "failed");
    assert!(finding["message"].as_str().unwrap().contains("103"));
    assert_eq!(mark(&report, "devices", "cpu"), "ok");
}

#[cfg(target_os = "linux")]
#[test]
fn a_service_whose_program_is_gone_fails() {
    use crate::service::Systemd;

    let home = home();
    let systemd = Systemd::new(&home);
    let installed = systemd.run(&home, &["install"]);
    assert!(installed.status.success(), "{installed:?}");
    let look = || {
        json(
            &systemd
                .tandem(&home)
                .args(["doctor", "--json"])
                .output()
                .unwrap(),
        )
    };
    let report = look();
    assert_eq!(mark(&report, "service", "registration"), "ok");
    assert_eq!(mark(&report, "service", "program"), "ok", "{report:#}");

    let unit = home.path().join("config/systemd/user/tandem.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    let text = text.replace("ExecStart=", "ExecStart=/nonexistent");
    std::fs::write(&unit, text).unwrap();
    let report = look();
    let (finding, mark) = find(&report, "service", "program");
    assert_eq!(mark, "failed", "{finding:#}");
    assert!(
        finding["advice"]
            .as_str()
            .unwrap()
            .contains("service install")
    );
}
