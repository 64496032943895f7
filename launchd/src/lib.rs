//! Tandem as a service of the user: what launchd and systemd are told about the daemon, and the commands that tell them.
//!
//! Owns the property list, the units, where they lie, and the order and waits of `launchctl` and `systemctl`. Must not
//! know what the daemon does, nor talk to it.
//!
//! | module | owns |
//! |---|---|
//! | `service` | what is to run: checked paths and text |
//! | `agent`, `units` | the files: a launchd agent's property list, systemd's `.service` and `.socket` |
//! | `launchctl`, `systemctl` | a [`Manager`] each: verbs as commands, with the waits that they need |
//! | `command`, `printed`, `files` | running commands, reading what they print, writing files whole |
//!
//! Both managers own the socket: they listen before the daemon runs, start it at the first connection, and let
//! connections wait while it restarts.

mod agent;
mod command;
mod error;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod launchctl;
mod printed;
mod service;
mod systemctl;
mod units;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

use tandem_proto::paths::System;

pub use agent::LABEL;
pub use error::ServiceError;
pub use launchctl::Launchd;
pub use service::Service;
pub use systemctl::Systemd;
pub use units::{SERVICE_UNIT, SOCKET_UNIT};

/// A file that belongs to the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceFile {
    /// Where it goes.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
}

/// What became of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// Files were written, and the manager has them.
    Now,
    /// Everything was as it should be, and nothing was touched.
    Already,
}

/// What the manager says about the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The files are there.
    pub installed: bool,
    /// The manager has the service and listens on its socket.
    pub loaded: bool,
    /// The daemon's process, where it runs.
    pub pid: Option<u32>,
    /// How the daemon ended last, in the manager's words; empty where it says nothing.
    pub last_end: String,
}

/// Returns the manager of this system for the user of this process.
///
/// # Errors
/// When `HOME` does not say where its files go.
pub fn native() -> Result<Box<dyn Manager>, ServiceError> {
    let directory = |variable: &str| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || directory("HOME").ok_or(ServiceError::NoHome);
    Ok(match System::current() {
        System::MacOs => Box::new(Launchd::new(
            Path::new("launchctl"),
            &home()?.join("Library/LaunchAgents"),
            rustix::process::getuid().as_raw(),
        )),
        System::Linux => {
            let config = match directory("XDG_CONFIG_HOME") {
                Some(config) => config,
                None => home()?.join(".config"),
            };
            Box::new(Systemd::new(
                Path::new("systemctl"),
                Path::new("journalctl"),
                &config.join("systemd/user"),
            ))
        }
    })
}

/// Where the daemon's log is.
#[derive(Debug)]
pub enum Logs {
    /// In a file.
    File(PathBuf),
    /// In what this command prints.
    Command(Command),
}

/// A program that starts and watches services. Each verb can be given again without harm.
pub trait Manager: Debug {
    /// Returns the files that [`Manager::install`] would write.
    ///
    /// # Errors
    /// When the service cannot be written down.
    fn files(&self, service: &Service) -> Result<Vec<ServiceFile>, ServiceError>;

    /// Says whether the manager runs for this user and can be asked. Nothing is changed.
    ///
    /// # Errors
    /// When it cannot.
    fn available(&self) -> Result<(), ServiceError>;

    /// Says whether [`Manager::install`] can be expected to work, before anything makes room for it. Nothing is changed.
    ///
    /// # Errors
    /// When the manager does not run for this user, or a directory cannot be written to.
    fn check(&self, service: &Service) -> Result<(), ServiceError> {
        self.available()?;
        let files = self.files(service)?;
        let parents = files.iter().filter_map(|file| file.path.parent());
        let mut directories = parents.map(Path::to_owned).chain(service.directories());
        directories.try_for_each(|directory| files::check_directory(&directory))
    }

    /// Writes the files and hands them to the manager, which listens from then on, now and after each login. Where they
    /// differ from what is installed, a daemon that runs ends first, and its requests do.
    ///
    /// # Errors
    /// When files cannot be written, or the manager refuses.
    fn install(&self, service: &Service) -> Result<Installed, ServiceError>;

    /// Takes the service back; returns whether there was anything. A daemon that runs ends first.
    ///
    /// # Errors
    /// When files cannot be removed, or the manager refuses or takes too long.
    fn uninstall(&self) -> Result<bool, ServiceError>;

    /// Listens, and starts the daemon.
    ///
    /// # Errors
    /// When the service is not installed, or the manager refuses.
    fn start(&self) -> Result<(), ServiceError>;

    /// Ends the daemon after its requests, and stops listening until the next start or login; returns whether there was
    /// anything to stop.
    ///
    /// # Errors
    /// When the service is not installed, or the manager refuses or takes too long.
    fn stop(&self) -> Result<bool, ServiceError>;

    /// Ends the daemon after its requests and starts it; connections wait meanwhile.
    ///
    /// # Errors
    /// As [`Manager::stop`] and [`Manager::start`].
    fn restart(&self) -> Result<(), ServiceError>;

    /// Returns what is installed and runs.
    ///
    /// # Errors
    /// When the manager cannot be asked.
    fn state(&self) -> Result<State, ServiceError>;

    /// Returns the program that the installed service runs; `None` where its file names none.
    ///
    /// # Errors
    /// When the service is not installed, or its file cannot be read.
    fn program(&self) -> Result<Option<PathBuf>, ServiceError>;

    /// Returns where the log is: its last `lines`, and what comes after if it is to `follow`.
    ///
    /// # Errors
    /// When the service is not installed.
    fn logs(&self, lines: usize, follow: bool) -> Result<Logs, ServiceError>;
}
