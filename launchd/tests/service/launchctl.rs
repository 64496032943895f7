//! The verbs against a `launchctl` that records what it is told and takes its time.

use std::os::unix::net::UnixListener;
use std::time::Duration;
use std::{fs, path::Path};

use crate::common::Fake;
use tandem_launchd::{Installed, LABEL, Launchd, Logs, Manager as _, ServiceError, State};

struct Mac {
    fake: Fake,
    launchd: Launchd,
}

impl Mac {
    /// A user who is logged in at the screen.
    fn new() -> Self {
        let fake = Fake::new("launchctl");
        fake.set("gui");
        let launchd = Launchd::new(&fake.program(), &fake.path("LaunchAgents"), 501);
        Self { fake, launchd }
    }

    fn installed() -> Self {
        let mac = Self::new();
        mac.launchd.install(&mac.fake.service()).unwrap();
        mac.fake.calls();
        mac
    }

    fn list(&self) -> std::path::PathBuf {
        self.fake.path(&format!("LaunchAgents/{LABEL}.plist"))
    }

    fn calls(&self) -> Vec<String> {
        let list = self.list().display().to_string();
        let calls = self.fake.calls();
        calls
            .iter()
            .map(|call| call.replace(&list, "LIST").replace(LABEL, "LABEL"))
            .collect()
    }
}

#[test]
fn install_loads_the_agent_and_a_second_one_touches_nothing() {
    let mac = Mac::new();
    assert_eq!(mac.launchd.state().unwrap(), State::default());
    let service = mac.fake.service();
    assert_eq!(mac.launchd.install(&service).unwrap(), Installed::Now);
    assert_eq!(
        mac.calls(),
        ["enable gui/501/LABEL", "bootstrap gui/501 LIST"]
    );
    assert_eq!(
        fs::read_to_string(mac.list()).unwrap(),
        mac.launchd.files(&service).unwrap()[0].content
    );
    for directory in ["run", "logs"] {
        assert!(mac.fake.path(directory).is_dir());
    }
    let state = mac.launchd.state().unwrap();
    assert!(state.installed && state.loaded && state.pid.is_none());
    assert_eq!(mac.launchd.install(&service).unwrap(), Installed::Already);
    assert_eq!(mac.calls(), [""; 0]);
}

#[test]
fn a_changed_service_is_loaded_after_the_old_one_is_gone() {
    let mac = Mac::installed();
    let changed = mac.fake.service().at_login(true);
    assert_eq!(mac.launchd.install(&changed).unwrap(), Installed::Now);
    // The fake has a bootstrap fail until the old one is gone: one call means that it was waited for.
    assert_eq!(
        mac.calls(),
        [
            "bootout gui/501/LABEL",
            "enable gui/501/LABEL",
            "bootstrap gui/501 LIST"
        ]
    );
    assert!(
        fs::read_to_string(mac.list())
            .unwrap()
            .contains("RunAtLoad")
    );
}

#[test]
fn a_bootstrap_that_comes_too_early_is_tried_again() {
    let mac = Mac::installed();
    fs::write(mac.fake.path("early"), "2\n").unwrap();
    mac.launchd
        .install(&mac.fake.service().at_login(true))
        .unwrap();
    let bootstrap = "bootstrap gui/501 LIST";
    assert_eq!(mac.calls()[2..], [bootstrap; 3]);
    assert!(mac.launchd.state().unwrap().loaded);
}

#[test]
fn without_a_screen_the_agent_is_the_users() {
    let mac = Mac::new();
    mac.fake.unset("gui");
    mac.launchd.install(&mac.fake.service()).unwrap();
    assert_eq!(
        mac.calls(),
        ["enable user/501/LABEL", "bootstrap user/501 LIST"]
    );
    // Somebody logs in; what is installed stays where it is until it is installed anew.
    mac.fake.set("gui");
    mac.launchd.start().unwrap();
    assert_eq!(mac.calls(), ["kickstart user/501/LABEL"]);
    mac.launchd.install(&mac.fake.service()).unwrap();
    assert_eq!(
        mac.calls(),
        [
            "bootout user/501/LABEL",
            "enable gui/501/LABEL",
            "bootstrap gui/501 LIST"
        ]
    );
}

#[test]
fn start_stop_and_restart_wait_for_each_other() {
    let mac = Mac::installed();
    mac.launchd.start().unwrap();
    let first = mac.launchd.state().unwrap().pid.unwrap();
    mac.launchd.start().unwrap();
    assert_eq!(
        mac.launchd.state().unwrap().pid,
        Some(first),
        "it runs, and is left alone"
    );
    mac.calls();

    mac.launchd.restart().unwrap();
    assert_eq!(
        mac.calls(),
        ["kill SIGTERM gui/501/LABEL", "kickstart gui/501/LABEL"]
    );
    assert_ne!(mac.launchd.state().unwrap().pid, Some(first));

    assert!(mac.launchd.stop().unwrap());
    let state = mac.launchd.state().unwrap();
    assert!(
        state.installed && !state.loaded && state.pid.is_none(),
        "gone, not only going"
    );
    assert!(!mac.launchd.stop().unwrap(), "nothing left to stop");
    assert_eq!(mac.calls(), ["bootout gui/501/LABEL"]);

    mac.launchd.restart().unwrap();
    assert_eq!(
        mac.calls(),
        ["bootstrap gui/501 LIST", "kickstart gui/501/LABEL"]
    );
}

#[test]
fn uninstall_leaves_neither_agent_nor_socket() {
    let mac = Mac::installed();
    let socket = mac.fake.path("run/tandem.sock");
    drop(UnixListener::bind(&socket).unwrap()); // as launchd may leave it
    assert!(mac.launchd.uninstall().unwrap());
    assert_eq!(mac.calls(), ["bootout gui/501/LABEL"]);
    assert!(!mac.list().exists() && !socket.exists());
    assert!(!mac.launchd.uninstall().unwrap());

    let served = UnixListener::bind(&socket).unwrap();
    mac.launchd.install(&mac.fake.service()).unwrap();
    mac.launchd.uninstall().unwrap();
    assert!(socket.exists(), "somebody listens on it");
    drop(served);
}

#[test]
fn a_damaged_agent_can_be_removed_and_replaced() {
    let mac = Mac::installed();
    fs::write(mac.list(), "<plist").unwrap();
    let error = mac.launchd.start().unwrap_err();
    assert!(matches!(error, ServiceError::Damaged { .. }), "{error:?}");
    // What is loaded goes first: it is not what the new file says.
    mac.launchd.install(&mac.fake.service()).unwrap();
    assert_eq!(
        mac.calls(),
        [
            "bootout gui/501/LABEL",
            "enable gui/501/LABEL",
            "bootstrap gui/501 LIST"
        ]
    );
    fs::write(mac.list(), "").unwrap();
    assert!(mac.launchd.uninstall().unwrap());
    assert_eq!(mac.launchd.state().unwrap(), State::default());

    // The file alone was removed, by hand.
    mac.launchd.install(&mac.fake.service()).unwrap();
    fs::remove_file(mac.list()).unwrap();
    let state = mac.launchd.state().unwrap();
    assert!(!state.installed && state.loaded);
    assert!(mac.launchd.uninstall().unwrap());
    assert!(!mac.launchd.state().unwrap().loaded);
}

#[test]
fn verbs_say_that_nothing_is_installed() {
    let mac = Mac::new();
    let launchd = &mac.launchd;
    for error in [
        launchd.start().unwrap_err(),
        launchd.stop().unwrap_err(),
        launchd.restart().unwrap_err(),
        launchd.logs(1, false).unwrap_err(),
        launchd.program().unwrap_err(),
    ] {
        assert!(
            matches!(error, ServiceError::NotInstalled { .. }),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("tandem service install"),
            "{error}"
        );
    }
    assert_eq!(mac.calls(), [""; 0]);
}

#[test]
fn what_never_leaves_is_waited_for_no_longer_than_it_may_take() {
    let mac = Mac::installed();
    let list = fs::read_to_string(mac.list()).unwrap();
    let at_once = list.replace("<integer>30</integer>", "<integer>0</integer>");
    assert_ne!(list, at_once, "ExitTimeOut is 20 s and a margin of 10 s");
    fs::write(mac.list(), at_once).unwrap();
    mac.fake.set("stuck");
    mac.launchd.start().unwrap();
    let impatient = mac.launchd.clone().patience(Duration::from_millis(300));
    for error in [
        impatient.restart().unwrap_err(),
        impatient.stop().unwrap_err(),
        impatient.install(&mac.fake.service()).unwrap_err(),
        impatient.uninstall().unwrap_err(),
    ] {
        assert!(matches!(error, ServiceError::Slow { .. }), "{error:?}");
        assert!(
            error.to_string().contains("launchctl print gui/501/"),
            "{error}"
        );
    }
    assert!(mac.list().exists(), "what is still loaded keeps its file");
}

#[test]
fn refusals_are_quoted() {
    let mac = Mac::new();
    mac.fake.set("broken");
    let error = mac
        .launchd
        .install(&mac.fake.service())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("launchctl bootstrap gui/501") && error.contains("requested session"),
        "{error}"
    );
    let nowhere = Launchd::new(
        Path::new("/nonexistent/launchctl"),
        &mac.fake.path("x"),
        501,
    );
    let error = nowhere.files(&mac.fake.service()).unwrap_err().to_string();
    assert!(
        error.contains("/nonexistent/launchctl") && error.contains("launchd"),
        "{error}"
    );
}

#[test]
fn the_log_is_where_the_agent_says() {
    let mac = Mac::installed();
    let Logs::File(file) = mac.launchd.logs(10, false).unwrap() else {
        panic!("launchd has no log of its own");
    };
    assert_eq!(file, mac.fake.path("logs/tandemd.log"));
}

#[test]
fn the_program_is_what_the_agent_says() {
    let mac = Mac::installed();
    let program = mac.launchd.program().unwrap();
    assert_eq!(
        program.as_deref(),
        Some(Path::new("/opt/tandem/bin/tandem"))
    );
}

#[test]
fn what_would_fail_is_known_before_anything_makes_room() {
    let mac = Mac::new();
    let service = mac.fake.service();
    mac.launchd.check(&service).unwrap();
    mac.fake.unset("gui");
    mac.launchd.check(&service).unwrap();
    mac.fake.set("no-domain");
    for result in [mac.launchd.check(&service), mac.launchd.available()] {
        assert!(
            matches!(result, Err(ServiceError::NoDomain { .. })),
            "{result:?}"
        );
    }
    assert_eq!(mac.calls(), [""; 0], "a look changes nothing");
    assert!(!mac.fake.path("LaunchAgents").exists());
}
