//! Where the configuration, the socket, the models and the logs are: the contract between the daemon and its clients.
//!
//! Computes names only. Creates nothing, and must not know what is written in any of these files.

mod environment;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Longest socket path in bytes that every supported system takes (`sun_path` of macOS less its terminating zero).
pub const MAX_SOCKET_PATH_BYTES: usize = 103;

/// Name under which a service manager passes the socket on to the daemon: the key under `Sockets` for launchd,
/// `FileDescriptorName=` for systemd.
pub const ACTIVATION_NAME: &str = "tandem";

/// Where in the home directory the lock of the user's daemon is.
const USER_LOCK_DIR: &str = ".local/state/tandem/run";

/// Variable that a client sets for a daemon that it starts in the background: what such a daemon has from the process that
/// started it means nothing, while who starts one in the foreground or as a service may mean it.
pub const BACKGROUND_VARIABLE: &str = "TANDEM_BACKGROUND";

/// The files and directories of one user's Tandem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Configuration of the daemon, TOML; need not exist.
    pub config_file: PathBuf,
    /// Unix socket that the daemon serves.
    pub socket: PathBuf,
    /// File that a running daemon holds locked, beside the socket.
    pub lock: PathBuf,
    /// File that it holds locked as well where nobody chose the socket: every daemon of this user on this machine, wherever
    /// the environment that it was started from has its socket, so that there is one, and all clients find it. `None` where
    /// the place of the socket is a choice (`TANDEM_HOME`, `TANDEM_SOCKET`), or does not depend on the environment.
    pub user_lock: Option<PathBuf>,
    /// Directory of log files.
    pub log_dir: PathBuf,
    /// Directory of what Tandem keeps for good.
    pub data_dir: PathBuf,
    /// Directory of what can be made or fetched again.
    pub cache_dir: PathBuf,
}

/// Whose conventions name the directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// `~/Library`.
    MacOs,
    /// The XDG base directories; also every other Unix.
    Linux,
}

/// Why the paths could not be told.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathsError {
    /// Neither a home directory nor a replacement is in the environment.
    #[error(
        "HOME is not set, and the system knows no home directory of this user; set it, or set TANDEM_HOME to the \
         directory that Tandem should use"
    )]
    NoHome,
    /// A variable holds a relative path, which would mean another file in every working directory.
    #[error("{variable} is `{}`, which is not an absolute path; write it in full, starting with `/`", path.display())]
    NotAbsolute {
        /// Name of the variable.
        variable: &'static str,
        /// What it holds.
        path: PathBuf,
    },
    /// The system could not bind or connect this socket.
    #[error(
        "the socket path `{}` is {length} bytes long, but at most {MAX_SOCKET_PATH_BYTES} fit; \
         set TANDEM_SOCKET to a shorter path",
        path.display()
    )]
    SocketPathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
    },
}

impl System {
    /// Returns the system this was built for.
    #[must_use]
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

impl Paths {
    /// Reads the environment of this process, and makes good what cron, ssh, sudo and service managers leave out of it: a
    /// home directory that is not set is the one of the user's account, and a runtime directory that is not set, or is
    /// another user's, is `/run/user/UID` where that is ours.
    ///
    /// # Errors
    /// See [`PathsError`].
    pub fn from_env() -> Result<Self, PathsError> {
        Self::resolve(System::current(), environment::variable, Path::exists)
    }

    /// Applies the rules to an environment: `var` looks a variable up, `exists` says whether a file is there.
    ///
    /// `TANDEM_HOME` puts everything under one directory; `TANDEM_SOCKET` and `TANDEM_CONFIG` replace one path each;
    /// an empty variable counts as unset.
    ///
    /// # Errors
    /// See [`PathsError`].
    pub fn resolve(
        system: System,
        var: impl Fn(&'static str) -> Option<OsString>,
        exists: impl Fn(&Path) -> bool,
    ) -> Result<Self, PathsError> {
        let environment = Environment { var, exists };
        let mut paths = match (environment.own("TANDEM_HOME")?, system) {
            (Some(home), _) => Self::under(&home),
            (None, System::MacOs) => environment.mac_os()?,
            (None, System::Linux) => environment.xdg()?,
        };
        if let Some(socket) = environment.own("TANDEM_SOCKET")? {
            paths.set_socket(socket);
        }
        if let Some(config_file) = environment.own("TANDEM_CONFIG")? {
            paths.config_file = config_file;
        }
        check_socket_path(&paths.socket)?;
        Ok(paths)
    }

    /// Puts everything under one directory, as `TANDEM_HOME` does.
    #[must_use]
    pub fn under(home: &Path) -> Self {
        Self {
            config_file: home.join("config.toml"),
            socket: home.join("run/tandem.sock"),
            lock: home.join("run/tandem.lock"),
            user_lock: None,
            log_dir: home.join("logs"),
            data_dir: home.to_path_buf(),
            cache_dir: home.join("cache"),
        }
    }

    /// Replaces the socket, and the lock that lies beside it. Who names the socket that it is anyway chooses nothing.
    pub fn set_socket(&mut self, socket: PathBuf) {
        if socket == self.socket {
            return;
        }
        self.user_lock = None;
        self.lock = socket.with_extension("lock");
        self.socket = socket;
    }

    /// Returns the directory of fetched and shipped models.
    #[must_use]
    pub fn models_dir(&self) -> PathBuf {
        self.data_dir.join("models")
    }

    /// Returns the directory of prepared weights.
    #[must_use]
    pub fn prepared_dir(&self) -> PathBuf {
        self.cache_dir.join("prepared")
    }

    /// Returns the file that a daemon started in the background writes its log to.
    #[must_use]
    pub fn log_file(&self) -> PathBuf {
        self.log_dir.join("tandemd.log")
    }
}

/// Checks that a socket can have this path on every supported system.
///
/// # Errors
/// Returns [`PathsError::SocketPathTooLong`] over [`MAX_SOCKET_PATH_BYTES`].
pub fn check_socket_path(path: &Path) -> Result<(), PathsError> {
    let length = path.as_os_str().len();
    if length > MAX_SOCKET_PATH_BYTES {
        return Err(PathsError::SocketPathTooLong {
            path: path.to_path_buf(),
            length,
        });
    }
    Ok(())
}

struct Environment<V, E> {
    var: V,
    exists: E,
}

impl<V: Fn(&'static str) -> Option<OsString>, E: Fn(&Path) -> bool> Environment<V, E> {
    fn mac_os(&self) -> Result<Paths, PathsError> {
        let home = self.home()?;
        let library = home.join("Library");
        let mut paths = Paths::under(&library.join("Application Support/tandem"));
        paths.log_dir = library.join("Logs/tandem");
        paths.cache_dir = library.join("Caches/tandem");
        let dotfile = home.join(".config/tandem/config.toml");
        if (self.exists)(&dotfile) {
            paths.config_file = dotfile;
        }
        Ok(paths)
    }

    fn xdg(&self) -> Result<Paths, PathsError> {
        let state = self.base("XDG_STATE_HOME", ".local/state")?;
        let run = self
            .absolute("XDG_RUNTIME_DIR")
            .map_or_else(|| state.join("run"), |dir| dir.join("tandem"));
        Ok(Paths {
            config_file: self.base("XDG_CONFIG_HOME", ".config")?.join("config.toml"),
            socket: run.join("tandem.sock"),
            lock: run.join("tandem.lock"),
            // By the home directory alone: the other variables are there in one environment and not in the next.
            user_lock: self
                .home()
                .ok()
                .map(|home| home.join(USER_LOCK_DIR).join(environment::user_lock_name())),
            log_dir: state.join("logs"),
            data_dir: self.base("XDG_DATA_HOME", ".local/share")?,
            cache_dir: self.base("XDG_CACHE_HOME", ".cache")?,
        })
    }

    /// Returns Tandem's directory in an XDG base directory.
    fn base(&self, variable: &'static str, default: &str) -> Result<PathBuf, PathsError> {
        let base = match self.absolute(variable) {
            Some(base) => base,
            None => self.home()?.join(default),
        };
        Ok(base.join("tandem"))
    }

    fn home(&self) -> Result<PathBuf, PathsError> {
        self.set("HOME").ok_or(PathsError::NoHome)
    }

    /// The XDG specification has relative values ignored.
    fn absolute(&self, variable: &'static str) -> Option<PathBuf> {
        self.set(variable).filter(|path| path.is_absolute())
    }

    /// Looks up one of Tandem's own variables, where a relative path is a mistake to report.
    fn own(&self, variable: &'static str) -> Result<Option<PathBuf>, PathsError> {
        match self.set(variable) {
            Some(path) if path.is_relative() => Err(PathsError::NotAbsolute { variable, path }),
            found => Ok(found),
        }
    }

    fn set(&self, variable: &'static str) -> Option<PathBuf> {
        (self.var)(variable)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }
}
