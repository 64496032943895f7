//! Starting the daemon when none runs, and waiting until it serves.
//!
//! The daemon is started detached: no standard input, output to the log file, and told that it is nobody's child, so that it
//! begins a session of its own and leaves behind what it has of the program that started it. It outlives that program. While
//! a daemon that is ending has the lock, its end is waited for.

mod error;
mod find;
mod holder;
mod log;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tandem_proto::paths::{BACKGROUND_VARIABLE, Paths};

pub use error::LaunchError;
pub use find::daemon as find_daemon;
pub use holder::{Holder, socket};

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
/// A daemon that answers at all says within this what pairs it has.
const ANSWER: Duration = Duration::from_secs(5);
/// How often to see whether a daemon that works on a call still answers others.
const LOOK: Duration = Duration::from_secs(5);
const MOST_FAILURES: u32 = 3;
/// A daemon that lives and says nothing for this long hangs, or is stopped.
const SILENCE: Duration = Duration::from_secs(20);
/// What ending may take beyond the drain.
const ENDING: Duration = Duration::from_secs(15);
/// Variables that are about the process that starts the daemon, or about where that is: a service manager's socket is not the
/// daemon's, nor is a number of threads that suits one program.
const NOT_FOR_THE_DAEMON: [&str; 14] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "RAYON_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MALLOC_ARENA_MAX",
    "LD_PRELOAD",
    "PWD",
    "OLDPWD",
];
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
    /// Another daemon is finishing its requests and then ends; this one starts after it.
    Ending {
        /// Since the wait began.
        elapsed: Duration,
        /// The process that ends, where it is known.
        pid: Option<u32>,
        /// How long it may still take to finish requests.
        left: Duration,
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
    /// Something accepts connections, and says nothing.
    Silent,
    Loading(Option<v1::LoadProgress>),
    Serving,
    NotLoaded {
        pair: String,
        error: String,
    },
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
        // Since when a daemon that lives has said nothing.
        let mut silent_since = None;
        loop {
            let elapsed = begin.elapsed();
            let state = state(&client).await?;
            let holder = match state {
                State::Absent if attempt.child.is_none() => Holder::find(&self.paths),
                _ => None,
            };
            if let Some(socket) = holder.as_ref().and_then(|holder| holder.socket.as_ref())
                && self.paths.user_lock.is_some()
                && socket != client.socket()
            {
                return Err(LaunchError::Elsewhere {
                    socket: socket.clone(),
                }
                .into());
            }
            let is_silent = holder.is_some() || matches!(state, State::Silent);
            silent_since = is_silent.then(|| silent_since.unwrap_or(elapsed));
            match state {
                State::Serving if attempt.starts == 0 && elapsed < AT_ONCE => {
                    return Ok(Outcome::AlreadyServing);
                }
                State::Serving => return Ok(Outcome::Serving { elapsed }),
                State::NotLoaded { pair, error } => return Ok(Outcome::NotLoaded { pair, error }),
                State::Loading(load) => progress(Progress::Loading { elapsed, load }),
                // It says nothing until somebody lets it go on.
                State::Silent if Holder::find(&self.paths).is_some_and(|it| it.is_stopped()) => {
                    return Err(silent(&self.paths, elapsed));
                }
                State::Silent => progress(Progress::Starting { elapsed }),
                State::Absent => match &holder {
                    None => {
                        attempt.keep_alive()?;
                        progress(Progress::Starting { elapsed });
                    }
                    Some(holder) => progress(match holder.drains_for {
                        Some(left) => Progress::Ending {
                            elapsed,
                            pid: holder.pid,
                            left,
                        },
                        None => Progress::Starting { elapsed },
                    }),
                },
            }
            if let Some(since) = silent_since {
                let ending = match holder.as_ref().and_then(|holder| holder.drains_for) {
                    // It is given the time that it says it needs.
                    Some(left) if !left.is_zero() => {
                        silent_since = Some(elapsed);
                        ENDING
                    }
                    Some(_) => ENDING,
                    None => SILENCE,
                };
                if elapsed.saturating_sub(since) > ending {
                    return Err(silent(&self.paths, elapsed));
                }
            }
            if elapsed > self.time_limit {
                if let Some(left) = holder.as_ref().and_then(|holder| holder.drains_for) {
                    let pid = holder.and_then(|holder| holder.pid);
                    return Err(Error::Ending { pid, left });
                }
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

    /// Does the same as [`Launcher::ensure_running`], and returns a client of the daemon that serves: this user's, wherever
    /// its socket is.
    ///
    /// # Errors
    /// As that.
    pub async fn connect(
        &self,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Client, Outcome), Error> {
        for _ in 0..MAX_STARTS {
            let client = Client::new(socket(&self.paths))?;
            match self.ensure_running(&client, progress).await {
                // It ended, or another one began elsewhere, between two looks.
                Err(Error::Launch(LaunchError::Elsewhere { .. })) => {}
                outcome => return Ok((client, outcome?)),
            }
        }
        let client = Client::new(socket(&self.paths))?;
        let outcome = self.ensure_running(&client, progress).await?;
        Ok((client, outcome))
    }

    fn spawn(&self, log: &LogFile) -> Result<Child, LaunchError> {
        let spawn_error = |source| LaunchError::Spawn {
            program: self.program.clone(),
            source,
        };
        // The working directory changes below, and a relative program would be looked for there.
        let program = std::path::absolute(&self.program).map_err(spawn_error)?;
        let (output, errors) = log.handles()?;
        let mut command = Command::new(program);
        for variable in NOT_FOR_THE_DAEMON {
            command.env_remove(variable);
        }
        command
            .args(&self.args)
            .env("TANDEM_SOCKET", &self.paths.socket)
            .env(BACKGROUND_VARIABLE, "1")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
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

/// Makes a call that a daemon answers at once, if it answers at all: at most for `limit`. Where none does, the error tells
/// more than that, as far as the lock files of these paths do: that a daemon is ending, or says nothing, and which.
///
/// # Errors
/// Those of the call, [`Error::Ending`] and [`Error::Silent`].
pub async fn ask<T>(
    paths: &Paths,
    limit: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let begin = Instant::now();
    match tokio::time::timeout(limit, call).await {
        Ok(Err(error)) if error.is_unavailable() => Err(match Holder::find(paths) {
            Some(Holder {
                pid,
                drains_for: Some(left),
                ..
            }) => Error::Ending { pid, left },
            Some(_) if begin.elapsed() > ANSWER => silent(paths, begin.elapsed()),
            _ => error,
        }),
        Ok(Err(Error::DeadlineExceeded { .. })) | Err(_) => Err(silent(paths, begin.elapsed())),
        Ok(answer) => answer,
    }
}

/// Waits until the daemon says nothing any more, and returns which; to be awaited beside a call that takes as long as it
/// takes.
pub async fn silence(paths: &Paths, client: &Client) -> Error {
    let client = client.clone().with_retry(Retry::never());
    let (mut last, mut failures) = (Instant::now(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        match client.health().await {
            Err(Error::DeadlineExceeded { .. }) => failures += 1,
            _ => (last, failures) = (Instant::now(), 0),
        }
        // A single failure may be this program's: it does nothing while nobody reads its output.
        let is_stopped = || Holder::find(paths).is_some_and(|holder| holder.is_stopped());
        if failures >= MOST_FAILURES || (failures > 0 && is_stopped()) {
            return silent(paths, last.elapsed());
        }
    }
}

/// Says which daemon says nothing.
fn silent(paths: &Paths, waited: Duration) -> Error {
    let holder = Holder::find(paths).unwrap_or_default();
    Error::Silent {
        pid: holder.pid,
        is_stopped: holder.is_stopped(),
        waited,
    }
}

async fn state(client: &Client) -> Result<State, Error> {
    match client.health().await {
        Ok(Health::Serving) => return Ok(State::Serving),
        Ok(Health::NotServing) => {}
        Err(error) if error.is_unavailable() => return Ok(State::Absent),
        Err(Error::DeadlineExceeded { .. }) => return Ok(State::Silent),
        Err(error) => return Err(error),
    }
    // The daemon may end between the two calls; the next turn finds that out.
    let pairs = tokio::time::timeout(ANSWER, client.list_pairs()).await;
    let Ok(pairs) = pairs else {
        return Ok(State::Silent);
    };
    let pairs = pairs.unwrap_or_default();
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
