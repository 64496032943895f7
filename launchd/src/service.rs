//! What is to run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ServiceError;

/// What managers may take to end the daemon beyond its drain limit, before they kill it.
const MARGIN: Duration = Duration::from_secs(10);

/// The daemon as a service: every path absolute, every text on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) socket: String,
    pub(crate) log_file: String,
    pub(crate) environment: BTreeMap<String, String>,
    /// In whole seconds.
    pub(crate) stop_limit: Duration,
    pub(crate) at_login: bool,
}

impl Service {
    /// Runs `program` with `args`. The manager listens on `socket`; a manager without a log of its own writes to
    /// `log_file`. `drain` is how long the daemon itself lets requests go on when it is to end.
    ///
    /// # Errors
    /// When a path is relative, or a text is not UTF-8 or has control characters.
    pub fn new<A: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = A>,
        socket: &Path,
        log_file: &Path,
        drain: Duration,
    ) -> Result<Self, ServiceError> {
        Ok(Self {
            program: absolute("the program", program)?,
            args: args
                .into_iter()
                .map(|arg| text("an argument", arg.as_ref()))
                .collect::<Result<_, _>>()?,
            socket: absolute("the socket", socket)?,
            log_file: absolute("the log file", log_file)?,
            environment: BTreeMap::new(),
            stop_limit: Duration::from_secs(drain.as_secs()) + MARGIN,
            at_login: false,
        })
    }

    /// Sets a variable in the daemon's environment, which has little of a shell's.
    ///
    /// # Errors
    /// When the value is not UTF-8 or has control characters.
    pub fn with_variable(mut self, name: &str, value: &OsStr) -> Result<Self, ServiceError> {
        let value = text(name, value)?;
        self.environment.insert(name.to_owned(), value);
        Ok(self)
    }

    /// Starts the daemon when the user logs in, rather than at the first connection. launchd does so in any case.
    #[must_use]
    pub fn at_login(mut self, at_login: bool) -> Self {
        self.at_login = at_login;
        self
    }

    /// Returns the directories that have to exist before the manager listens and the daemon logs.
    pub(crate) fn directories(&self) -> impl Iterator<Item = PathBuf> {
        [&self.socket, &self.log_file]
            .into_iter()
            .filter_map(|path| Some(Path::new(path).parent()?.to_owned()))
    }
}

fn absolute(what: &'static str, path: &Path) -> Result<String, ServiceError> {
    if !path.is_absolute() {
        return Err(ServiceError::NotAbsolute {
            what,
            path: path.to_owned(),
        });
    }
    text(what, path.as_os_str())
}

fn text(what: &str, text: &OsStr) -> Result<String, ServiceError> {
    match text.to_str() {
        Some(text) if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err(ServiceError::Unwritable {
            what: what.to_owned(),
            text: text.to_string_lossy().into_owned(),
        }),
    }
}
