//! systemd's manager of the user, through `systemctl --user`: systemctl(1).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Ended, Tool};
use crate::units::{self, SERVICE_UNIT, SOCKET_UNIT};
use crate::{Installed, Logs, Manager, Service, ServiceError, ServiceFile, State, files};

/// The units of one user.
#[derive(Clone, Debug)]
pub struct Systemd {
    systemctl: Tool,
    journalctl: PathBuf,
    units: PathBuf,
}

/// What `show` says about a unit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    active: String,
    pub(crate) enabled: bool,
    pub(crate) pid: Option<u32>,
    result: String,
    exit_status: String,
}

impl Systemd {
    /// Runs `systemctl` and `journalctl` for the user whose units are in `units`.
    #[must_use]
    pub fn new(systemctl: &Path, journalctl: &Path, units: &Path) -> Self {
        Self {
            systemctl: Tool::new(systemctl, "systemd"),
            journalctl: journalctl.to_owned(),
            units: units.to_owned(),
        }
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.units.join(name)
    }

    fn ask(&self, args: &[&str]) -> Result<Ended, ServiceError> {
        let ended = self.systemctl.ask(["--user"].iter().chain(args.iter()))?;
        if !ended.success() && ended.stderr.contains("Failed to connect to") {
            return Err(ServiceError::NoSession {
                output: ended.stderr.trim().to_owned(),
            });
        }
        Ok(ended)
    }

    fn run(&self, args: &[&str]) -> Result<Ended, ServiceError> {
        self.ask(args)?.expect_success()
    }

    fn show(&self, unit: &str) -> Result<Shown, ServiceError> {
        const PROPERTIES: &str =
            "--property=ActiveState,UnitFileState,MainPID,Result,ExecMainStatus";
        Ok(parse(&self.run(&["show", PROPERTIES, unit])?.stdout))
    }

    fn expect_installed(&self) -> Result<(), ServiceError> {
        for name in [SOCKET_UNIT, SERVICE_UNIT] {
            let path = self.unit(name);
            if !path.exists() {
                return Err(ServiceError::NotInstalled { path });
            }
        }
        Ok(())
    }

    /// Lets units start again that failed too often, such as with a configuration that was wrong.
    fn forget_failures(&self) -> Result<(), ServiceError> {
        // It complains about units that are not loaded, which then have not failed.
        self.ask(&["reset-failed", SERVICE_UNIT, SOCKET_UNIT])
            .map(drop)
    }
}

impl Manager for Systemd {
    fn files(&self, service: &Service) -> Result<Vec<ServiceFile>, ServiceError> {
        Ok(vec![
            ServiceFile {
                path: self.unit(SOCKET_UNIT),
                content: units::socket(service),
            },
            ServiceFile {
                path: self.unit(SERVICE_UNIT),
                content: units::service(service),
            },
        ])
    }

    fn available(&self) -> Result<(), ServiceError> {
        match self.show(SOCKET_UNIT) {
            // It answers for any unit, installed or not; versions word differently what keeps them from it.
            Err(ServiceError::Command { output, .. }) => Err(ServiceError::NoSession { output }),
            shown => shown.map(drop),
        }
    }

    fn install(&self, service: &Service) -> Result<Installed, ServiceError> {
        let wanted = self.files(service)?;
        let (socket, daemon) = (self.show(SOCKET_UNIT)?, self.show(SERVICE_UNIT)?);
        let current = wanted.iter().all(files::is_current);
        let as_wanted = socket.is_active() && socket.enabled && daemon.enabled == service.at_login;
        if current && as_wanted {
            return Ok(Installed::Already);
        }
        files::make_directories(service)?;
        if !current {
            if socket.is_active() || daemon.is_active() {
                self.run(&["stop", SERVICE_UNIT, SOCKET_UNIT])?;
            }
            wanted.iter().try_for_each(files::write)?;
            self.run(&["daemon-reload"])?;
        }
        if service.at_login {
            self.run(&["enable", SOCKET_UNIT, SERVICE_UNIT])?;
        } else {
            if daemon.enabled {
                self.run(&["disable", SERVICE_UNIT])?;
            }
            self.run(&["enable", SOCKET_UNIT])?;
        }
        self.forget_failures()?;
        self.run(&["start", SOCKET_UNIT])?;
        Ok(Installed::Now)
    }

    fn uninstall(&self) -> Result<bool, ServiceError> {
        let paths = [SOCKET_UNIT, SERVICE_UNIT].map(|name| self.unit(name));
        if !paths.iter().any(|path| path.exists()) {
            return Ok(false);
        }
        // One unit may be missing: each goes by itself, the socket last, so that it does not start the daemon anew.
        for (name, path) in [SERVICE_UNIT, SOCKET_UNIT].iter().zip(paths.iter().rev()) {
            if path.exists() {
                self.run(&["disable", "--now", name])?;
            }
        }
        for path in &paths {
            files::remove(path)?;
        }
        self.run(&["daemon-reload"])?;
        self.forget_failures()?;
        Ok(true)
    }

    fn start(&self) -> Result<(), ServiceError> {
        self.expect_installed()?;
        self.forget_failures()?;
        self.run(&["start", SOCKET_UNIT, SERVICE_UNIT]).map(drop)
    }

    fn stop(&self) -> Result<bool, ServiceError> {
        self.expect_installed()?;
        let active = self.show(SOCKET_UNIT)?.is_active() || self.show(SERVICE_UNIT)?.is_active();
        // Together: a socket that goes on listening starts the daemon with the next connection.
        self.run(&["stop", SERVICE_UNIT, SOCKET_UNIT])?;
        Ok(active)
    }

    fn restart(&self) -> Result<(), ServiceError> {
        self.expect_installed()?;
        self.forget_failures()?;
        // Not the socket, on which connections wait meanwhile.
        self.run(&["start", SOCKET_UNIT])?;
        self.run(&["restart", SERVICE_UNIT]).map(drop)
    }

    fn state(&self) -> Result<State, ServiceError> {
        match self.expect_installed() {
            Ok(()) => {}
            Err(ServiceError::NotInstalled { .. }) => return Ok(State::default()),
            Err(error) => return Err(error),
        }
        let daemon = self.show(SERVICE_UNIT)?;
        Ok(State {
            installed: true,
            loaded: self.show(SOCKET_UNIT)?.is_active(),
            pid: daemon.pid,
            last_end: match daemon.result.as_str() {
                "" | "success" => String::new(),
                result => format!("{result}, exit code {}", daemon.exit_status),
            },
        })
    }

    fn program(&self) -> Result<Option<PathBuf>, ServiceError> {
        self.expect_installed()?;
        let path = self.unit(SERVICE_UNIT);
        let unit = std::fs::read_to_string(&path)
            .map_err(|source| ServiceError::io("read", &path, source))?;
        Ok(units::program(&unit).map(PathBuf::from))
    }

    fn logs(&self, lines: usize, follow: bool) -> Result<Logs, ServiceError> {
        self.expect_installed()?;
        let mut command = Command::new(&self.journalctl);
        command
            .arg(format!("--user-unit={SERVICE_UNIT}"))
            .arg(format!("--lines={lines}"))
            .arg("--no-pager");
        if follow {
            command.arg("--follow");
        }
        Ok(Logs::Command(command))
    }
}

impl Shown {
    /// Says whether there is something to stop; starting and stopping count.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self.active.as_str(), "inactive" | "failed" | "")
    }
}

pub(crate) fn parse(text: &str) -> Shown {
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_default()
            .to_owned()
    };
    Shown {
        active: value("ActiveState"),
        enabled: value("UnitFileState") == "enabled",
        pid: value("MainPID").parse().ok().filter(|pid| *pid > 0),
        result: value("Result"),
        exit_status: value("ExecMainStatus"),
    }
}
