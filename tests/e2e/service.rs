//! `tandem service` against a `systemctl` that records what it is told, with a real daemon where one is in the way.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tandem_tests::Home;

use crate::{default_daemon, home};

const FAKES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../launchd/tests/fake");

/// A fake systemd in a home.
pub(crate) struct Systemd {
    directory: PathBuf,
}

impl Systemd {
    pub(crate) fn new(home: &Home) -> Self {
        let directory = home.path().join("systemd");
        let copied = Command::new("cp")
            .args([Path::new("-R"), FAKES.as_ref(), &directory])
            .status();
        assert!(copied.unwrap().success());
        Self { directory }
    }

    pub(crate) fn run(&self, home: &Home, arguments: &[&str]) -> Output {
        self.command(home, arguments).output().unwrap()
    }

    fn command(&self, home: &Home, arguments: &[&str]) -> Command {
        let mut command = self.tandem(home);
        command.arg("service").args(arguments);
        command
    }

    /// Returns a command that asks this systemd.
    pub(crate) fn tandem(&self, home: &Home) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = home.command();
        command
            .env("PATH", format!("{}:{path}", self.directory.display()))
            .env("XDG_CONFIG_HOME", home.path().join("config"));
        command
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.directory.join("calls")).unwrap_or_default()
    }
}

fn said(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_service_is_installed_shown_and_removed() {
    let home = home();
    let systemd = Systemd::new(&home);
    let units = home.path().join("config/systemd/user");
    let run = |arguments: &[&str]| {
        let output = systemd.run(&home, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        said(&output)
    };
    let status = || -> Value { serde_json::from_str(&run(&["status", "--json"])).unwrap() };

    assert_eq!(status()["installed"], false);
    let printed = run(&["install", "--print"]);
    assert!(printed.contains("ListenStream=") && printed.contains(units.to_str().unwrap()));
    assert!(!units.exists(), "a look changes nothing");

    assert!(run(&["install"]).contains("is installed"));
    let unit = std::fs::read_to_string(units.join("tandem.service")).unwrap();
    assert!(
        unit.contains(&format!(
            "Environment=TANDEM_HOME={}",
            home.path().display()
        )),
        "the daemon sees what the command sees: {unit}"
    );
    assert!(run(&["install"]).contains("already"));
    assert_eq!(status()["listening"], true);
    assert!(run(&["status"]).contains("does not run"));
    assert!(run(&["logs", "-n", "3"]).contains("--lines=3"));
    assert!(run(&["stop"]).contains("has stopped"));
    assert_eq!(status()["listening"], false);
    assert!(run(&["uninstall"]).contains("removed"));
    assert!(run(&["uninstall"]).contains("not installed"));
    assert!(!units.join("tandem.service").exists() && !units.join("tandem.socket").exists());
}

#[tokio::test]
async fn a_daemon_in_the_background_makes_room() {
    let mut daemon = default_daemon().await;
    let systemd = Systemd::new(daemon.home());
    let output = systemd.run(daemon.home(), &["install"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
    assert!(systemd.calls().contains("start tandem.socket"));
}

#[test]
fn failures_have_exit_codes_and_say_what_to_do() {
    let broken = home().config("nonsense = 1");
    let systemd = Systemd::new(&broken);
    let output = systemd.run(&broken, &["install"]);
    assert_eq!(output.status.code(), Some(78), "{}", said(&output));
    assert!(said(&output).contains("nonsense"), "{}", said(&output));

    let home = home();
    let systemd = Systemd::new(&home);
    for verb in ["start", "stop", "restart", "logs"] {
        let output = systemd.run(&home, &[verb]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(
            said(&output).contains("tandem service install"),
            "{}",
            said(&output)
        );
    }

    let nowhere = systemd
        .command(&home, &["install"])
        .env("PATH", home.path())
        .output()
        .unwrap();
    assert_eq!(nowhere.status.code(), Some(69), "{}", said(&nowhere));
    assert!(said(&nowhere).contains("systemctl"), "{}", said(&nowhere));

    systemd.run(&home, &["install"]);
    std::fs::write(systemd.directory.join("no-bus"), "").unwrap();
    let output = systemd.run(&home, &["status"]);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(said(&output).contains("enable-linger"), "{}", said(&output));

    // The manager says that it runs, and nobody answers.
    std::fs::remove_file(systemd.directory.join("no-bus")).unwrap();
    let output = systemd.run(&home, &["start"]);
    assert_eq!(output.status.code(), Some(69), "{}", said(&output));
    assert!(
        said(&output).contains("tandem service logs"),
        "{}",
        said(&output)
    );
}

/// Everything that can be known is known before the daemon that serves has to go, and it comes back where the rest fails.
#[tokio::test]
async fn a_daemon_that_serves_is_not_lost_to_a_service_that_cannot_be() {
    let mut daemon = default_daemon().await;
    let home = daemon.home();
    let systemd = Systemd::new(home);
    std::fs::write(systemd.directory.join("no-bus"), "").unwrap();
    for verb in ["install", "start", "restart"] {
        let output = systemd.run(home, &[verb]);
        assert_eq!(output.status.code(), Some(69), "{verb}: {}", said(&output));
        assert!(said(&output).contains("enable-linger"), "{}", said(&output));
    }
    let serves = format!("serves as process {}", daemon.pid());
    let status = systemd.run(home, &["status"]);
    assert_eq!(status.status.code(), Some(69), "{}", said(&status));
    assert!(said(&status).contains(&serves), "{}", said(&status));
    let page = systemd.tandem(home).arg("doctor").output().unwrap();
    assert!(!said(&page).contains("service install"), "{}", said(&page));
    std::fs::remove_file(systemd.directory.join("no-bus")).unwrap();

    for verb in ["start", "restart"] {
        let output = systemd.run(home, &[verb]);
        assert_eq!(output.status.code(), Some(1), "{verb}: {}", said(&output));
        assert!(said(&output).contains("not installed"), "{}", said(&output));
    }
    let status = systemd.run(home, &["status"]);
    assert!(
        status.status.success() && said(&status).contains(&serves),
        "{}",
        said(&status)
    );
    let json = systemd.run(home, &["status", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["installed"], &json["serving_pid"]),
        (&false.into(), &daemon.pid().into())
    );

    // What cannot be known before: the manager refuses to listen.
    std::fs::write(systemd.directory.join("broken"), "").unwrap();
    let output = systemd.run(home, &["install"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("in the background again"),
        "{}",
        said(&output)
    );
    daemon.exit().await;
    let home = daemon.home();
    let again = home.command().args(["status", "--json"]).output().unwrap();
    assert!(again.status.success(), "{}", said(&again));
    let stopped = home.command().args(["daemon", "stop"]).output().unwrap();
    assert!(stopped.status.success(), "{}", said(&stopped));
}
