//! The verbs against a `systemctl` that records what it is told, and the units by systemd's own judgement.

use std::fs;
use std::path::Path;

use crate::common::Fake;
use tandem_launchd::{
    Installed, Logs, Manager as _, SERVICE_UNIT, SOCKET_UNIT, ServiceError, State, Systemd,
};

struct Linux {
    fake: Fake,
    systemd: Systemd,
}

impl Linux {
    fn new() -> Self {
        let fake = Fake::new("systemctl");
        let systemd = Systemd::new(&fake.program(), Path::new("journalctl"), &fake.path("user"));
        Self { fake, systemd }
    }

    fn installed() -> Self {
        let linux = Self::new();
        linux.systemd.install(&linux.fake.service()).unwrap();
        linux.fake.calls();
        linux
    }

    fn calls(&self) -> Vec<String> {
        self.fake.calls()
    }
}

const RESET: &str = "--user reset-failed tandem.service tandem.socket";

#[test]
fn install_listens_and_a_second_one_touches_nothing() {
    let linux = Linux::new();
    assert_eq!(linux.systemd.state().unwrap(), State::default());
    let service = linux.fake.service();
    assert_eq!(linux.systemd.install(&service).unwrap(), Installed::Now);
    assert_eq!(
        linux.calls(),
        [
            "--user daemon-reload",
            "--user enable tandem.socket",
            RESET,
            "--user start tandem.socket"
        ]
    );
    for file in linux.systemd.files(&service).unwrap() {
        assert_eq!(fs::read_to_string(&file.path).unwrap(), file.content);
    }
    let state = linux.systemd.state().unwrap();
    assert!(
        state.installed && state.loaded && state.pid.is_none(),
        "the first connection starts it"
    );
    assert_eq!(linux.systemd.install(&service).unwrap(), Installed::Already);
    assert_eq!(linux.calls(), [""; 0]);
}

#[test]
fn a_changed_service_replaces_the_old_one() {
    let linux = Linux::installed();
    let at_login = linux.fake.service().at_login(true);
    assert_eq!(linux.systemd.install(&at_login).unwrap(), Installed::Now);
    assert_eq!(
        linux.calls(),
        [
            "--user enable tandem.socket tandem.service",
            RESET,
            "--user start tandem.socket"
        ],
        "the units are the same"
    );
    let moved = at_login
        .at_login(false)
        .with_variable("HF_HOME", "/m".as_ref())
        .unwrap();
    linux.systemd.install(&moved).unwrap();
    assert_eq!(
        linux.calls(),
        [
            "--user stop tandem.service tandem.socket",
            "--user daemon-reload",
            "--user disable tandem.service",
            "--user enable tandem.socket",
            RESET,
            "--user start tandem.socket",
        ]
    );
}

#[test]
fn start_stop_and_restart() {
    let linux = Linux::installed();
    linux.systemd.start().unwrap();
    assert_eq!(
        linux.calls(),
        [RESET, "--user start tandem.socket tandem.service"]
    );
    let first = linux.systemd.state().unwrap().pid.unwrap();
    linux.systemd.restart().unwrap();
    assert_eq!(
        linux.calls(),
        [
            RESET,
            "--user start tandem.socket",
            "--user restart tandem.service"
        ]
    );
    assert_ne!(linux.systemd.state().unwrap().pid, Some(first));
    assert!(linux.systemd.stop().unwrap());
    let state = linux.systemd.state().unwrap();
    assert!(state.installed && !state.loaded && state.pid.is_none());
    assert!(!linux.systemd.stop().unwrap(), "nothing left to stop");
}

#[test]
fn uninstall_takes_everything_back() {
    let linux = Linux::installed();
    assert!(linux.systemd.uninstall().unwrap());
    assert_eq!(
        linux.calls(),
        [
            "--user disable --now tandem.service",
            "--user disable --now tandem.socket",
            "--user daemon-reload",
            RESET,
        ]
    );
    for unit in [SOCKET_UNIT, SERVICE_UNIT] {
        assert!(!linux.fake.path("user").join(unit).exists());
    }
    assert!(!linux.systemd.uninstall().unwrap());
    assert_eq!(linux.systemd.state().unwrap(), State::default());

    // Half of it is there, as after a removal by hand.
    let linux = Linux::installed();
    fs::remove_file(linux.fake.path("user").join(SERVICE_UNIT)).unwrap();
    assert!(matches!(
        linux.systemd.start(),
        Err(ServiceError::NotInstalled { .. })
    ));
    assert!(linux.systemd.uninstall().unwrap());
}

#[test]
fn failures_are_told() {
    let linux = Linux::installed();
    linux.fake.set("failed");
    assert_eq!(
        linux.systemd.state().unwrap().last_end,
        "exit-code, exit code 78"
    );
    linux.systemd.start().unwrap();
    assert_eq!(
        linux.systemd.state().unwrap().last_end,
        "",
        "a start forgets it"
    );

    linux.fake.set("no-bus");
    let error = linux.systemd.state().unwrap_err();
    assert!(matches!(error, ServiceError::NoSession { .. }), "{error:?}");
    assert!(error.to_string().contains("enable-linger"), "{error}");

    let nothing = Linux::new();
    for error in [
        nothing.systemd.start().unwrap_err(),
        nothing.systemd.stop().unwrap_err(),
        nothing.systemd.restart().unwrap_err(),
        nothing.systemd.logs(1, false).unwrap_err(),
        nothing.systemd.program().unwrap_err(),
    ] {
        assert!(
            matches!(error, ServiceError::NotInstalled { .. }),
            "{error:?}"
        );
    }
    let nowhere = Systemd::new(
        Path::new("/nonexistent/systemctl"),
        Path::new("j"),
        Path::new("/x"),
    );
    let error = nowhere
        .install(&linux.fake.service())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/nonexistent/systemctl") && error.contains("systemd"),
        "{error}"
    );
}

#[test]
fn the_program_is_what_the_unit_says() {
    let program = Linux::installed().systemd.program().unwrap();
    assert_eq!(
        program.as_deref(),
        Some(Path::new("/opt/tandem/bin/tandem"))
    );
}

#[test]
fn the_log_is_the_journals() {
    let linux = Linux::installed();
    let Logs::Command(command) = linux.systemd.logs(7, true).unwrap() else {
        panic!("systemd has a journal");
    };
    let args: Vec<_> = command.get_args().collect();
    assert_eq!(
        args,
        [
            "--user-unit=tandem.service",
            "--lines=7",
            "--no-pager",
            "--follow"
        ]
    );
}

#[test]
fn what_would_fail_is_known_before_anything_makes_room() {
    let linux = Linux::new();
    let service = linux.fake.service();
    linux.systemd.check(&service).unwrap();
    linux.fake.set("no-bus");
    for result in [linux.systemd.check(&service), linux.systemd.available()] {
        assert!(
            matches!(result, Err(ServiceError::NoSession { .. })),
            "{result:?}"
        );
    }
    linux.fake.unset("no-bus");

    // A file where the units' directory would be.
    linux.fake.set("user");
    let result = linux.systemd.check(&service);
    assert!(matches!(result, Err(ServiceError::Io { .. })), "{result:?}");
    linux.fake.unset("user");
    assert_eq!(linux.calls(), [""; 0], "a look changes nothing");
    assert!(!linux.fake.path("user").exists() && !linux.fake.path("run").exists());
}
