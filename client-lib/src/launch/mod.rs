//! Starting the daemon when none runs, and waiting until it serves.
//!
//! The daemon is started detached: a process group of its own, no standard input, output to the log file. It outlives
//! the program that started it.

mod error;
mod find;
mod log;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tandem_proto::paths::Paths;

pub use error::LaunchError;
pub use find::daemon as find_daemon;

use crate::error::load_failure;
use crate::{Client, Error, Health, Retry, v1};
use log::LogFile;

/// Short beside the time that a daemon with prepared weights takes to start.
const POLL: Duration = Duration::from_millis(25);
/// An answer within this time is one of a daemon that was serving already.
const AT_ONCE: Duration = Duration::from_millis(100);
const DEFAULT_TIME_LIMIT: Duration = Duration::from_secs(180);
/// The daemon's exit code where another one holds its lock.
const EXIT_ALREADY_RUNNING: i32 = 1;
/// Starts that may lose against another daemon that is just starting or ending.
const MAX_STARTS: u32 = 5;

/// Knows how to start the daemon.
#[derive(Clone, Debug)]
pub struct Launcher {
    program: PathBuf,
    args: Vec<OsString>,
    paths: Paths,
    time_limit: Duration,
}

/// What is being waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The process was started and does not answer yet.
    Starting {
        /// Since the wait began.
        elapsed: Duration,
    },
    /// The daemon answers and loads its default pair.
    Loading {
        /// Since the wait began.
        elapsed: Duration,
        /// How far it is, where the daemon says so.
        load: Option<v1::LoadProgress>,
    },
}

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The daemon was serving already.
    AlreadyServing,
    /// The daemon serves now.
    Serving {
        /// How long it took.
        elapsed: Duration,
    },
    /// The daemon runs, but could not load its default pair; other pairs may work.
    NotLoaded {
        /// Name of the pair.
        pair: String,
        /// What went wrong.
        error: String,
    },
}

enum State {
    Absent,
    Loading(Option<v1::LoadProgress>),
    Serving,
    NotLoaded { pair: String, error: String },
}

impl Launcher {
    /// Starts `program` with `args` as the daemon of these paths.
    #[must_use]
    pub fn new(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = OsString>,
        paths: Paths,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().collect(),
            paths,
            time_limit: DEFAULT_TIME_LIMIT,
        }
    }

    /// Finds the daemon: `TANDEM_DAEMON`, else `tandemd` beside the running program, else in `PATH`.
    ///
    /// # Errors
    /// Returns [`LaunchError::NotFound`] where it is in none of them.
    pub fn find(paths: Paths) -> Result<Self, LaunchError> {
        Ok(Self::new(find::daemon()?, [], paths))
    }

    /// Returns the program that it starts, and its arguments.
    #[must_use]
    pub fn command(&self) -> (&Path, &[OsString]) {
        (&self.program, &self.args)
    }

    /// Waits at most this long; 180 s otherwise.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Starts the daemon if nothing answers on its socket, and waits until it serves or gave up loading its default
    /// pair. `progress` is called some tens of times a second meanwhile.
    ///
    /// # Errors
    /// Returns [`Error::Launch`] where the daemon cannot be started, ends early or takes too long, and other errors
    /// where what answers on the socket is no daemon of this user.
    pub async fn ensure_running(
        &self,
        client: &Client,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Outcome, Error> {
        let client = client.clone().with_retry(Retry::never());
        let begin = Instant::now();
        let mut attempt = Attempt {
            launcher: self,
            child: None,
            log: None,
            starts: 0,
        };
        loop {
            let elapsed = begin.elapsed();
            match state(&client).await? {
                State::Serving if attempt.starts == 0 && elapsed < AT_ONCE => {
                    return Ok(Outcome::AlreadyServing);
                }
                State::Serving => return Ok(Outcome::Serving { elapsed }),
                State::NotLoaded { pair, error } => return Ok(Outcome::NotLoaded { pair, error }),
                State::Loading(load) => progress(Progress::Loading { elapsed, load }),
                State::Absent => {
                    attempt.keep_alive()?;
                    progress(Progress::Starting { elapsed });
                }
            }
            if elapsed > self.time_limit {
                let (log_file, log_tail) = attempt.log_tail();
                return Err(LaunchError::TimedOut {
                    limit: self.time_limit,
                    log_file,
                    log_tail,
                }
                .into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn spawn(&self, log: &LogFile) -> Result<Child, LaunchError> {
        let spawn_error = |source| LaunchError::Spawn {
            program: self.program.clone(),
            source,
        };
        // The working directory changes below, and a relative program would be looked for there.
        let program = std::path::absolute(&self.program).map_err(spawn_error)?;
        let (output, errors) = log.handles()?;
        Command::new(program)
            .args(&self.args)
            .env("TANDEM_SOCKET", &self.paths.socket)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // Ctrl-C in the terminal of the caller is not for the daemon.
            .process_group(0)
            .spawn()
            .map_err(spawn_error)
    }
}

/// The daemon process that this wait started, if it did.
struct Attempt<'a> {
    launcher: &'a Launcher,
    child: Option<Child>,
    log: Option<LogFile>,
    starts: u32,
}

impl Attempt<'_> {
    /// Starts the daemon where it is not running; fails where it ended by itself.
    fn keep_alive(&mut self) -> Result<(), LaunchError> {
        if let Some(child) = &mut self.child {
            let Ok(Some(status)) = child.try_wait() else {
                return Ok(());
            };
            self.child = None;
            // Another daemon was starting or ending; either it will answer, or the next start will succeed.
            let lost_race = status.code() == Some(EXIT_ALREADY_RUNNING) && self.starts < MAX_STARTS;
            if !lost_race {
                let (log_file, log_tail) = self.log_tail();
                return Err(LaunchError::Exited {
                    status,
                    log_file,
                    log_tail,
                });
            }
            return Ok(());
        }
        let log = LogFile::open(&self.launcher.paths)?;
        self.child = Some(self.launcher.spawn(&log)?);
        self.log = Some(log);
        self.starts += 1;
        Ok(())
    }

    fn log_tail(&self) -> (PathBuf, String) {
        let tail = self.log.as_ref().map(LogFile::tail).unwrap_or_default();
        (self.launcher.paths.log_file(), tail)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A host that outlives the daemon would keep it as a zombie.
            std::thread::spawn(move || child.wait());
        }
    }
}

async fn state(client: &Client) -> Result<State, Error> {
    match client.health().await {
        Ok(Health::Serving) => return Ok(State::Serving),
        Ok(Health::NotServing) => {}
        Err(error) if error.is_unavailable() => return Ok(State::Absent),
        Err(Error::DeadlineExceeded { .. }) => return Ok(State::Loading(None)),
        Err(error) => return Err(error),
    }
    // The daemon may end between the two calls; the next turn finds that out.
    let pairs = client.list_pairs().await.unwrap_or_default();
    let Some(pair) = pairs.into_iter().find(|pair| pair.is_default) else {
        return Ok(State::Loading(None));
    };
    Ok(match load_failure(&pair) {
        Some(error) => State::NotLoaded {
            pair: pair.name,
            error,
        },
        None => State::Loading(pair.load_progress),
    })
}
