//! launchd, through `launchctl`: launchctl(1).
//!
//! `bootout` returns before the service is gone, and a `bootstrap` that comes too early fails with "5: Input/output
//! error". So each waits for what `print` says, with a limit.

use std::fs::{self, FileType};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::agent::{self, InstalledAgent, LABEL, Session};
use crate::command::Tool;
use crate::printed::Printed;
use crate::{Installed, Logs, Manager, Service, ServiceError, ServiceFile, State, files};

/// Between two looks.
const POLL: Duration = Duration::from_millis(100);
/// Between two tries to load an agent.
const RETRY: Duration = Duration::from_millis(500);
/// How long loading is tried.
const BOOTSTRAP_LIMIT: Duration = Duration::from_secs(10);
/// What launchd may take beyond the time after which it kills.
const MARGIN: Duration = Duration::from_secs(10);

/// "Input/output error": it is loaded, or not gone yet, or the list is bad. 37, "Operation already in progress", is
/// what older systems say.
const BOOTSTRAP_LATER: [i32; 2] = [5, 37];
/// Done; "No such process"; "Operation now in progress"; "Could not find service".
const BOOTOUT_TAKEN: [i32; 4] = [0, 3, 36, 113];

/// The agents of one user.
#[derive(Clone, Debug)]
pub struct Launchd {
    launchctl: Tool,
    list: PathBuf,
    uid: u32,
    margin: Duration,
}

impl Launchd {
    /// Runs `launchctl` for the user `uid`, whose agents are in `agents`.
    #[must_use]
    pub fn new(launchctl: &Path, agents: &Path, uid: u32) -> Self {
        Self {
            launchctl: Tool::new(launchctl, "launchd"),
            list: agents.join(format!("{LABEL}.plist")),
            uid,
            margin: MARGIN,
        }
    }

    /// Waits this long beyond the time after which launchd kills; 10 s otherwise.
    #[must_use]
    pub fn patience(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// Returns the session of a user who is logged in at the screen, if one is.
    fn session(&self) -> Result<Session, ServiceError> {
        let aqua = Session::Aqua.domain(self.uid);
        let is_there = self.launchctl.ask(["print", &aqua])?.success();
        Ok(if is_there {
            Session::Aqua
        } else {
            Session::Background
        })
    }

    fn target(&self, session: Session) -> String {
        format!("{}/{LABEL}", session.domain(self.uid))
    }

    /// Returns what is loaded of a service; `None`: nothing.
    fn print(&self, target: &str) -> Result<Option<Printed>, ServiceError> {
        let ended = self.launchctl.ask(["print", target])?;
        Ok(ended.success().then(|| Printed::parse(&ended.stdout)))
    }

    /// Returns the service that is loaded, wherever it is: the file may say something else by now.
    fn loaded(&self) -> Result<Option<(String, Printed)>, ServiceError> {
        for session in [Session::Aqua, Session::Background] {
            let target = self.target(session);
            if let Some(printed) = self.print(&target)? {
                return Ok(Some((target, printed)));
            }
        }
        Ok(None)
    }

    fn bootstrap(&self, session: Session) -> Result<(), ServiceError> {
        let list = self.list.to_string_lossy();
        let begin = Instant::now();
        loop {
            let ended = self
                .launchctl
                .ask(["bootstrap", &session.domain(self.uid), &list])?;
            let later = ended
                .code()
                .is_some_and(|code| BOOTSTRAP_LATER.contains(&code));
            if !later || begin.elapsed() > BOOTSTRAP_LIMIT {
                return ended.expect_success().map(drop);
            }
            if self.print(&self.target(session))?.is_some() {
                return Ok(());
            }
            std::thread::sleep(RETRY);
        }
    }

    fn bootout(&self, target: &str, stop_limit_s: u64) -> Result<(), ServiceError> {
        let ended = self.launchctl.ask(["bootout", target])?;
        if !ended
            .code()
            .is_some_and(|code| BOOTOUT_TAKEN.contains(&code))
        {
            ended.expect_success()?;
        }
        self.wait("unload the service", target, stop_limit_s, || {
            Ok(self.print(target)?.is_none())
        })
    }

    /// Waits until `done`, at most for `stop_limit_s` seconds and a margin.
    fn wait(
        &self,
        what: &'static str,
        target: &str,
        stop_limit_s: u64,
        done: impl Fn() -> Result<bool, ServiceError>,
    ) -> Result<(), ServiceError> {
        let limit = Duration::from_secs(stop_limit_s) + self.margin;
        let begin = Instant::now();
        while !done()? {
            if begin.elapsed() > limit {
                return Err(ServiceError::Slow {
                    what,
                    target: target.to_owned(),
                    limit,
                });
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    /// Starts the daemon of a loaded service; one that runs is left alone.
    fn kickstart(&self, target: &str) -> Result<(), ServiceError> {
        let ended = self.launchctl.ask(["kickstart", target])?;
        let runs = || Ok::<_, ServiceError>(self.print(target)?.and_then(|it| it.pid).is_some());
        if ended.success() || runs()? {
            return Ok(());
        }
        ended.expect_success().map(drop)
    }
}

impl Manager for Launchd {
    fn files(&self, service: &Service) -> Result<Vec<ServiceFile>, ServiceError> {
        Ok(vec![ServiceFile {
            path: self.list.clone(),
            content: agent::property_list(service, self.session()?)?,
        }])
    }

    fn available(&self) -> Result<(), ServiceError> {
        let domain = self.session()?.domain(self.uid);
        match self.launchctl.run(["print", &domain]) {
            Err(ServiceError::Command { output, .. }) => {
                Err(ServiceError::NoDomain { domain, output })
            }
            printed => printed.map(drop),
        }
    }

    fn install(&self, service: &Service) -> Result<Installed, ServiceError> {
        let session = self.session()?;
        let file = ServiceFile {
            path: self.list.clone(),
            content: agent::property_list(service, session)?,
        };
        let loaded = self.loaded()?;
        if loaded.is_some() && files::is_current(&file) {
            return Ok(Installed::Already);
        }
        files::make_directories(service)?;
        if let Some((target, _)) = loaded {
            let before = InstalledAgent::read(&self.list).unwrap_or_default();
            self.bootout(&target, before.stop_limit_s)?;
        }
        files::write(&file)?;
        // Somebody may have disabled it, and that outlives the file.
        self.launchctl.run(["enable", &self.target(session)])?;
        self.bootstrap(session)?;
        Ok(Installed::Now)
    }

    fn uninstall(&self) -> Result<bool, ServiceError> {
        // A file that is damaged has to go all the more.
        let agent = match InstalledAgent::read(&self.list) {
            Err(ServiceError::Damaged { .. }) => InstalledAgent::default(),
            Err(ServiceError::NotInstalled { .. }) if self.loaded()?.is_none() => return Ok(false),
            Err(ServiceError::NotInstalled { .. }) => InstalledAgent::default(),
            agent => agent?,
        };
        if let Some((target, _)) = self.loaded()? {
            self.bootout(&target, agent.stop_limit_s)?;
        }
        if let Some(socket) = agent.socket {
            remove_dead_socket(Path::new(&socket))?;
        }
        files::remove(&self.list)?;
        Ok(true)
    }

    fn start(&self) -> Result<(), ServiceError> {
        let session = InstalledAgent::read(&self.list)?.session;
        match self.loaded()? {
            Some((target, _)) => self.kickstart(&target),
            None => {
                self.bootstrap(session)?;
                self.kickstart(&self.target(session))
            }
        }
    }

    fn stop(&self) -> Result<bool, ServiceError> {
        let agent = InstalledAgent::read(&self.list)?;
        let Some((target, _)) = self.loaded()? else {
            return Ok(false);
        };
        // A service that stays loaded starts again with the next connection.
        self.bootout(&target, agent.stop_limit_s)?;
        Ok(true)
    }

    fn restart(&self) -> Result<(), ServiceError> {
        let agent = InstalledAgent::read(&self.list)?;
        if let Some((target, Printed { pid: Some(pid), .. })) = self.loaded()? {
            // Not `kickstart -k`, which does not say how gently it kills: requests are to finish.
            self.launchctl.run(["kill", "SIGTERM", &target])?;
            self.wait("end the daemon", &target, agent.stop_limit_s, || {
                let now = self.print(&target)?.and_then(|printed| printed.pid);
                Ok(now != Some(pid))
            })?;
        }
        self.start()
    }

    fn state(&self) -> Result<State, ServiceError> {
        let loaded = self.loaded()?;
        let (is_loaded, printed) = (loaded.is_some(), loaded.unwrap_or_default().1);
        Ok(State {
            installed: self.list.exists(),
            loaded: is_loaded,
            pid: printed.pid,
            last_end: printed.last_end,
        })
    }

    fn program(&self) -> Result<Option<PathBuf>, ServiceError> {
        Ok(InstalledAgent::read(&self.list)?.program.map(PathBuf::from))
    }

    fn logs(&self, _lines: usize, _follow: bool) -> Result<Logs, ServiceError> {
        let agent = InstalledAgent::read(&self.list)?;
        let file = agent
            .log_file
            .ok_or_else(|| ServiceError::PropertyList("it names no StandardErrorPath".into()))?;
        Ok(Logs::File(file.into()))
    }
}

/// Removes a socket that launchd has left behind and nobody listens on.
fn remove_dead_socket(path: &Path) -> Result<(), ServiceError> {
    let is_socket = fs::symlink_metadata(path)
        .map(|meta| meta.file_type())
        .is_ok_and(|kind: FileType| kind.is_socket());
    let is_dead = || {
        UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    };
    if is_socket && is_dead() {
        files::remove(path)?;
    }
    Ok(())
}
