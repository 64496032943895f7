//! `tandemd` as a command, for its own binary and for `tandem`: arguments, exit codes, signals.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tandem_models::{ModelError, Store};
use tandem_proto::paths::{ACTIVATION_NAME, BACKGROUND_VARIABLE, Paths, PathsError};
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tracing_subscriber::filter::ParseError;

use crate::config::{Config, ConfigError};
use crate::listener::{ListenError, Listener, UserLock};
pub use crate::logging::LogFormat;
use crate::{ConfigSource, Notifier, RunError, Setup, Signal as Asked, logging, platform};

/// How long blocking work may go on after the daemon ended before the process leaves it behind.
const RUNTIME_SHUTDOWN: Duration = Duration::from_millis(200);
/// How long the last log lines may take: a reader may have stopped reading for good.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Bytes of address space that the daemon itself takes: threads' stacks, and what allocators set aside for them.
const LEAST_ROOM: u64 = 128 << 20;

/// Arguments of the daemon.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// Configuration file [default: config.toml in Tandem's configuration directory, if there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Unix socket to serve [default: tandem.sock in Tandem's runtime directory]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// What log lines on standard error look like
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Least level to log: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", env = "TANDEM_LOG", default_value = "info")]
    pub log_level: String,
    /// Check the configuration and exit: 0 if it is valid, 78 if not
    #[arg(long)]
    pub check_config: bool,
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("--log-level: {0}")]
    LogLevel(#[from] ParseError),
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot use the model directory: {0}")]
    Store(ModelError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
    #[error(
        "the limits of this process leave {room} bytes of address space, and the daemon needs {LEAST_ROOM} before it loads \
         anything; raise them (`ulimit -v`, `ulimit -d`)"
    )]
    Room { room: u64 },
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Failure {
    /// Returns the exit code, after sysexits.h where it has one.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Listen(ListenError::AlreadyRunning { .. }) => 1,
            Self::LogLevel(_) => 2,
            Self::Room { .. }
            | Self::Listen(_)
            | Self::Runtime(_)
            | Self::Run(_)
            | Self::Store(_) => 69,
            Self::Paths(_) | Self::Config(_) => 78,
        }
    }
}

/// Runs the daemon until a signal ends it, and returns the exit code of the process: 0 after a signal, 1 where another
/// daemon is running, 2 for bad arguments, 69 where it cannot serve, 78 for a bad configuration.
#[must_use]
pub fn main(args: &Args) -> ExitCode {
    // First of all: before there is anything to lose.
    let background = std::env::var_os(BACKGROUND_VARIABLE).is_some_and(|value| !value.is_empty());
    // Sockets of a service manager are descriptors that have to stay.
    let given = std::env::var("LISTEN_PID").is_ok_and(|pid| pid == std::process::id().to_string());
    let inherited = match background && !given {
        true => platform::start_clean(),
        false => Vec::new(),
    };
    let ended = start(args, &inherited);
    if let Err(failure) = &ended {
        logging::tell(&format!("tandemd: {failure}"));
    }
    logging::flush(LAST_WORDS);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ExitCode::from(failure.exit_code()),
    }
}

fn start(args: &Args, inherited: &[String]) -> Result<(), Failure> {
    platform::limits_are_errors();
    platform::keep_memory_together();
    if let Some(room) = platform::room().filter(|room| *room < LEAST_ROOM) {
        return Err(Failure::Room { room });
    }
    platform::allow_descriptors();
    let log_file = Paths::from_env().ok().map(|paths| paths.log_file());
    logging::init(args.log_format, &args.log_level, log_file)?;
    for what in inherited {
        tracing::warn!(
            what,
            "the program that started this daemon leaves something to it; `tandem daemon restart` elsewhere, or \
             `tandem service install`, starts one without"
        );
    }
    let mut paths = Paths::from_env()?;
    if let Some(socket) = &args.socket {
        paths.set_socket(absolute(socket)?);
    }
    let source = config_source(args.config.as_deref(), &paths)?;
    let config = Config::load(&source.path, source.required);
    if args.check_config {
        let config = config?;
        let file = config
            .path
            .as_ref()
            .map_or("no file; built-in values".to_owned(), |path| {
                path.display().to_string()
            });
        logging::tell(&format!("tandemd: the configuration is valid ({file})"));
        return Ok(());
    }
    let store = Store::from_env(paths.models_dir()).map_err(Failure::Store)?;
    let inherited =
        platform::inherited_sockets(ACTIVATION_NAME).map_err(ListenError::Activation)?;
    let (config, problem) = match config {
        // A manager would start it again and again, and the reason would be in a log that nobody reads.
        Err(problem) if !inherited.is_empty() => (Config::built_in(), Some(problem)),
        config => (config?, None),
    };
    let setup = Setup {
        config,
        problem,
        source,
        listener: listen(inherited, paths.clone())?,
        notifier: Notifier::from_env(),
        platform: platform::native(),
        store,
        prepared_dir: paths.prepared_dir(),
    };

    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("tandem-io")
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let result = runtime.block_on(async {
        let signals = signals().map_err(|source| RunError::System {
            action: "listen for signals",
            source,
        })?;
        crate::run(setup, signals).await
    });
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
    Ok(result?)
}

/// Serves what a service manager has bound, else binds the socket. Who starts the daemon by hand and by a manager at once
/// is told so by the lock.
fn listen(inherited: Vec<OwnedFd>, mut paths: Paths) -> Result<Listener, ListenError> {
    let user = |paths: &Paths| match &paths.user_lock {
        Some(lock) => UserLock::acquire(lock, &paths.socket),
        None => Ok(None),
    };
    if inherited.is_empty() {
        // Before the socket is there: who finds one is served.
        let user = user(&paths)?;
        return Ok(Listener::bind(&paths.socket, &paths.lock)?.under(user));
    }
    let expected = paths.socket.clone();
    let listener = Listener::adopt(inherited, |path| {
        paths.set_socket(path.to_owned());
        paths.lock.clone()
    })?;
    if listener.path() != expected {
        tracing::warn!(
            inherited = %listener.path().display(),
            expected = %expected.display(),
            "the service manager's socket is not where clients look by default"
        );
    }
    let user = user(&paths)?;
    Ok(listener.under(user))
}

/// A file that somebody named has to exist; the usual one need not.
pub(crate) fn config_source(named: Option<&Path>, paths: &Paths) -> Result<ConfigSource, Failure> {
    Ok(match named {
        Some(path) => ConfigSource {
            path: absolute(path)?,
            required: true,
        },
        None => ConfigSource {
            path: absolute(&paths.config_file)?,
            required: std::env::var_os("TANDEM_CONFIG").is_some_and(|path| !path.is_empty()),
        },
    })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|source| {
        RunError::System {
            action: "find the working directory",
            source,
        }
        .into()
    })
}

/// Returns a channel that gets an item for each signal: SIGTERM and SIGINT end, SIGHUP reads the configuration again. A
/// terminal that closes sends the latter, and does not end the daemon.
fn signals() -> std::io::Result<mpsc::Receiver<Asked>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up: Signal = signal(SignalKind::hangup())?;
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            let asked = tokio::select! {
                _ = terminate.recv() => Asked::End,
                _ = interrupt.recv() => Asked::End,
                _ = hang_up.recv() => Asked::Reload,
            };
            if sender.send(asked).await.is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
