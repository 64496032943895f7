//! The files themselves: compared with the ones in `golden/`, read back, and judged by the systems' own checkers.
//!
//! `TANDEM_BLESS=1 cargo test -p tandem-launchd --test service` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{Fake, full_service};
use tandem_launchd::{LABEL, Launchd, Manager as _, Service, ServiceError, Systemd};

fn golden(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("TANDEM_BLESS").is_some() {
        fs::write(&path, content).unwrap();
    }
    assert_eq!(
        content,
        fs::read_to_string(&path).unwrap(),
        "{name} has changed"
    );
}

fn property_list(service: &Service) -> String {
    let fake = Fake::new("launchctl");
    fake.set("gui");
    let launchd = Launchd::new(
        &fake.program(),
        Path::new("/Users/ada/Library/LaunchAgents"),
        501,
    );
    let mut files = launchd.files(service).unwrap();
    let file = files.pop().unwrap();
    assert!(files.is_empty());
    assert_eq!(
        file.path,
        PathBuf::from(format!("/Users/ada/Library/LaunchAgents/{LABEL}.plist"))
    );
    file.content
}

fn units(service: &Service) -> [(PathBuf, String); 2] {
    let systemd = Systemd::new(
        Path::new("systemctl"),
        Path::new("journalctl"),
        Path::new("/u"),
    );
    let files = systemd.files(service).unwrap();
    let units: Vec<_> = files
        .into_iter()
        .map(|file| (file.path, file.content))
        .collect();
    units.try_into().unwrap()
}

#[test]
fn the_property_list_is_as_reviewed() {
    golden("agent.plist", &property_list(&full_service()));
    golden(
        "agent-at-login.plist",
        &property_list(&full_service().at_login(true)),
    );
}

#[test]
fn the_units_are_as_reviewed() {
    let [(socket, socket_text), (service, service_text)] = units(&full_service());
    assert_eq!(
        [socket, service],
        ["/u/tandem.socket", "/u/tandem.service"].map(PathBuf::from)
    );
    golden("tandem.socket", &socket_text);
    golden("tandem.service", &service_text);
}

#[test]
fn the_property_list_reads_back() {
    let text = property_list(&full_service());
    let list: plist::Value = plist::from_bytes(text.as_bytes()).unwrap();
    let root = list.as_dictionary().unwrap();
    let socket = root["Sockets"].as_dictionary().unwrap()["tandem"]
        .as_dictionary()
        .unwrap();
    assert_eq!(socket["SockPathMode"].as_unsigned_integer(), Some(0o600));
    assert!(
        socket["SockPathName"]
            .as_string()
            .unwrap()
            .starts_with("/Users/ada/")
    );
    assert_eq!(root["Umask"].as_unsigned_integer(), Some(0o077));
    assert_eq!(root["ProcessType"].as_string(), Some("Interactive"));
    assert_eq!(
        root["ExitTimeOut"].as_unsigned_integer(),
        Some(55),
        "45.5 s and a margin"
    );
    let restart = root["KeepAlive"].as_dictionary().unwrap();
    assert_eq!(restart["SuccessfulExit"].as_boolean(), Some(false));
    for key in [
        "EnableTransactions",
        "EnablePressuredExit",
        "LowPriorityBackgroundIO",
        "Nice",
    ] {
        assert!(
            !root.contains_key(key),
            "{key} slows the daemon or has it killed"
        );
    }
    // The crate's own reader knows every key but refuses the mode, as its writer does.
    let mut known = list.clone();
    let sockets = known
        .as_dictionary_mut()
        .unwrap()
        .get_mut("Sockets")
        .unwrap();
    let socket = sockets
        .as_dictionary_mut()
        .unwrap()
        .get_mut("tandem")
        .unwrap();
    socket.as_dictionary_mut().unwrap().remove("SockPathMode");
    let read: launchd::Launchd = plist::from_value(&known).unwrap();
    let again = plist::to_value(&read).unwrap();
    assert_eq!(again, known, "nothing is lost between the two");
}

/// Every Mac has it.
#[cfg(target_os = "macos")]
#[test]
fn plutil_accepts_the_property_list() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.plist");
    fs::write(&path, property_list(&full_service())).unwrap();
    judge("plutil", Command::new("plutil").arg("-lint").arg(&path));
}

/// With the service's real file, because the checker looks for it.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "needs systemd-analyze; `.ci/run test` runs it"]
fn systemd_accepts_the_units() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("a tool");
    fs::copy("/bin/true", &program).unwrap();
    let service = Service::new(
        &program,
        ["daemon", "50%", "$HOME", "a\"b"],
        &directory.path().join("50%/t.sock"),
        &directory.path().join("log"),
        Duration::from_secs(20),
    )
    .and_then(|service| service.with_variable("HF_HOME", "/Volumes/m & s/$hf %h".as_ref()))
    .unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--user", "--man=no"]);
    // It wants the directory that sockets of users lie in.
    verify.env("XDG_RUNTIME_DIR", directory.path());
    for (path, text) in units(&service) {
        let path = directory.path().join(path.file_name().unwrap());
        fs::write(&path, text).unwrap();
        verify.arg(path);
    }
    judge("systemd-analyze", &mut verify);
}

/// Runs a checker, which has to find nothing to say.
fn judge(name: &str, command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{name} cannot be run: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.trim().is_empty(),
        "{name}: {said}"
    );
}

#[test]
fn what_no_file_can_say_is_refused() {
    let service = |program: &str, arg: &str, socket: &str| {
        Service::new(
            Path::new(program),
            [arg],
            Path::new(socket),
            Path::new("/l"),
            Duration::ZERO,
        )
    };
    assert!(service("/p", "a", "/s").is_ok());
    assert!(matches!(
        service("p", "a", "/s"),
        Err(ServiceError::NotAbsolute { .. })
    ));
    assert!(matches!(
        service("/p", "a", "~/s"),
        Err(ServiceError::NotAbsolute { .. })
    ));
    assert!(matches!(
        service("/p", "a\nb", "/s"),
        Err(ServiceError::Unwritable { .. })
    ));
    assert!(matches!(
        service("/p\u{7f}", "a", "/s"),
        Err(ServiceError::Unwritable { .. })
    ));
    let error = service("/p", "a", "/s")
        .unwrap()
        .with_variable("HF_HOME", "a\nExecStart=/bin/evil".as_ref())
        .unwrap_err();
    assert!(error.to_string().contains("HF_HOME"), "{error}");
}
