//! A directory with a fake command in it, and a service to install.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tandem_launchd::Service;
use tempfile::TempDir;

/// A fake command, its state, and a place for files.
#[derive(Debug)]
pub(crate) struct Fake {
    directory: TempDir,
    name: &'static str,
}

impl Fake {
    /// Copies the command: each test has a state of its own.
    pub(crate) fn new(name: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake");
        let copy = directory.path().join(name);
        // Written by another process: a thread that is just starting one would keep our file open, and a program that
        // is open for writing cannot be run.
        let copied = std::process::Command::new("cp")
            .args([source.join(name), copy.clone()])
            .status();
        assert!(copied.unwrap().success());
        fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory, name }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.path(self.name)
    }

    /// Sets a part of the state.
    pub(crate) fn set(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub(crate) fn unset(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Returns what the command was called with since the last time, without what only looks.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        fs::write(self.path("calls"), "").unwrap();
        text.lines()
            .filter(|call| !call.starts_with("print ") && !call.contains(" show "))
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn service(&self) -> Service {
        Service::new(
            Path::new("/opt/tandem/bin/tandem"),
            ["daemon", "run"],
            &self.path("run/tandem.sock"),
            &self.path("logs/tandemd.log"),
            Duration::from_secs(20),
        )
        .unwrap()
    }
}

/// A service that does not depend on where the test runs, with everything that files can say.
pub(crate) fn full_service() -> Service {
    Service::new(
        Path::new("/Applications/My Tools/tandem"),
        ["daemon", "run"],
        Path::new("/Users/ada/Library/Application Support/tandem/run/tandem.sock"),
        Path::new("/Users/ada/Library/Logs/tandem/tandemd.log"),
        Duration::from_millis(45_500),
    )
    .and_then(|service| service.with_variable("TANDEM_CONFIG", "/Users/ada/50%/c.toml".as_ref()))
    .and_then(|service| service.with_variable("HF_HOME", "/Volumes/m & s/$hf".as_ref()))
    .unwrap()
}
