//! `tandemd`: keeps pairs of models resident and serves them over gRPC on a Unix socket.
//!
//! Owns everything between the socket and the engine: configuration, the socket, residency, queues, deadlines, draining,
//! the operating system. Must not know how tokens are computed, nor download anything.
//!
//! One request goes one way:
//!
//! ```text
//! socket → server → service (checks, reserves room) → generate (waits for the pair, makes tokens)
//!        → worker (the engine thread: submit, step) → replies → generate → stream
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`cli`] | arguments, exit codes, signals |
//! | [`config`] | the file: keys, defaults, limits |
//! | [`listener`] | the socket: permissions, lock, stale files, inherited ones, peers |
//! | [`platform`] | readings from macOS and Linux; all `unsafe` |
//! | `server`, `phase`, `health` | the gRPC server, its way from serving to its end, `grpc.health.v1` |
//! | `service`, `generate`, `status` | `tandem.v1`: short calls, the one long call, introspection |
//! | [`Notifier`] | what systemd hears about all this |
//! | `tokens`, `computing` | prompts, tokens and texts within what fits; making them few at a time, for as long as somebody waits |
//! | `convert`, `deadline`, `errors` | wire types in and out, `grpc-timeout`, the table of errors |
//! | `entropy`, `drafters` | randomness and whose texts help to guess, what drafts |
//! | `residency`, `loading` | which pairs are in memory, reloads, leases; reading models |
//! | `governor`, `watchdog` | memory that gets short, an engine that hangs |
//! | `config_watch`, `events` | the config file as it changes, what those who watch are told |
//! | [`doctor`] | what `tandem doctor` finds out: looks at all of the above, without a daemon |
//! | `worker`, `replies`, `record` | the engine thread, its way back to streams, accounts and log lines |

#![deny(clippy::print_stderr)] // it panics where standard error cannot be written; `logging` does not

pub mod cli;
mod computing;
pub mod config;
mod config_watch;
mod convert;
mod deadline;
pub mod doctor;
mod drafters;
mod entropy;
mod errors;
mod events;
#[doc(hidden)]
pub mod fuzzing;
mod generate;
mod governor;
mod health;
pub mod listener;
mod loading;
mod logging;
mod notify;
mod phase;
pub mod platform;
mod record;
mod replies;
mod residency;
mod server;
mod service;
mod status;
mod tokens;
mod watchdog;
mod worker;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tandem_models::Store;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::computing::Computing;
use crate::config::{Config, ConfigError, format_bytes};
use crate::entropy::Entropy;
use crate::events::Events;
use crate::governor::MemoryView;
use crate::listener::{ListenError, Listener};
use crate::loading::Loader;
pub use crate::notify::Notifier;
use crate::phase::Lifecycle;
use crate::platform::Platform;
use crate::record::Totals;
pub use crate::residency::ConfigSource;
use crate::residency::{Equipment, Residency};
use crate::service::Daemon;

/// How long the step in progress may take before the daemon ends without it.
const ENGINE_STOP: Duration = Duration::from_millis(500);

/// Everything a daemon is made of.
#[derive(Debug)]
pub struct Setup {
    /// What to serve, and how much of it.
    pub config: Config,
    /// Why that is not what the source says, where the daemon begins all the same: no pair serves, for this reason, until a
    /// reload finds it corrected.
    pub problem: Option<ConfigError>,
    /// Where that came from, and where changes of it are to be seen.
    pub source: ConfigSource,
    /// Where to serve it; a socket that was bound for it is removed when [`run`] returns.
    pub listener: Listener,
    /// Whom to tell about it.
    pub notifier: Notifier,
    /// Readings of the machine.
    pub platform: Arc<dyn Platform>,
    /// Where models lie.
    pub store: Store,
    /// Where prepared weights are kept; made when it is needed.
    pub prepared_dir: PathBuf,
}

/// What a daemon can be asked from outside of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Take no more requests, let running ones end, and end; the second time, end at once.
    End,
    /// Read the configuration again.
    Reload,
}

/// Why a daemon ended that nobody asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The socket cannot be used.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refused something the daemon cannot do without.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The descriptors compiled into this program are damaged.
    #[error("cannot offer reflection: {0}")]
    Reflection(tonic_reflection::server::Error),
    /// The server failed.
    #[error("the server failed: {0}")]
    Server(tonic::transport::Error),
    /// The server ended by itself.
    #[error("the server ended without being asked to")]
    ServerEnded,
    /// The engine thread is gone, and with it every pair.
    #[error("the engine thread ended without being asked to")]
    EngineThreadEnded,
}

/// Serves until told otherwise. The first [`Signal::End`] begins a drain: no new requests, running ones go on for the
/// configured time; the second ends it at once.
///
/// Pairs load while the socket already answers: requests for them wait, health says NOT_SERVING. A pair that cannot be
/// loaded does not end the daemon; its requests and the status say why.
///
/// # Errors
/// When the daemon cannot start, or ends without having been asked to.
pub async fn run(setup: Setup, signals: mpsc::Receiver<Signal>) -> Result<(), RunError> {
    let Setup {
        config,
        problem,
        source,
        listener,
        notifier,
        platform,
        store,
        prepared_dir,
    } = setup;
    let system = |action| move |source| RunError::System { action, source };
    let socket_path = listener.path().to_owned();
    let (sockets, hold) = listener.into_parts();
    let hold = Arc::new(hold);
    let sockets = sockets
        .into_iter()
        .map(tokio::net::UnixListener::from_std)
        .collect::<Result<Vec<_>, _>>()
        .map_err(system("use the socket"))?;
    let physical = platform
        .physical_memory()
        .map_err(system("read how much memory there is"))?;
    let budget = config.budget(physical, platform.recommended_working_set());
    let (totals, events) = (Arc::new(Totals::default()), Events::default());
    let (worker, mut engine_ended) =
        worker::start(Arc::clone(&totals), events.clone(), Arc::clone(&platform))
            .map_err(system("start the engine thread"))?;
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        socket = %socket_path.display(),
        config = config.path.as_ref().map(|path| path.display().to_string()),
        pairs = config.pairs.len(),
        budget = format_bytes(budget),
        physical = format_bytes(physical),
        "listening"
    );

    let loader = Loader {
        store,
        prepared_dir,
        cores: cores(platform.as_ref()),
    };
    let residency = Arc::new(Residency::new(Equipment {
        config,
        source: source.clone(),
        loader,
        worker: worker.clone(),
        platform,
        events,
        budget,
    }));
    let daemon = Arc::new(Daemon {
        socket: socket_path,
        started: Instant::now(),
        residency: Arc::clone(&residency),
        memory: watch::Sender::new(MemoryView::default()),
        hanging: watch::Sender::new(None),
        lifecycle: Lifecycle::new(),
        totals,
        entropy: Entropy::default(),
        computing: Computing::default(),
    });
    match problem {
        Some(problem) => residency.begin_without(problem.into()),
        None => residency.preload(),
    }
    let mut attendants = JoinSet::new();
    attendants.spawn(residency::keep(Arc::clone(&residency)));
    attendants.spawn(residency::mend(Arc::clone(&residency)));
    attendants.spawn(governor::govern(
        Arc::clone(&residency),
        daemon.memory.clone(),
    ));
    attendants.spawn(watchdog::watch(
        Arc::clone(&residency),
        daemon.hanging.clone(),
    ));
    attendants.spawn(config_watch::follow(residency, source.path));
    tokio::spawn(notify::follow(Arc::clone(&daemon), notifier));
    let (sender, made) = mpsc::channel(1);
    let door = server::Door {
        listeners: sockets,
        made,
        lost: tokio::spawn(listener::keep(Arc::clone(&hold), sender)),
        hold: Arc::clone(&hold),
    };
    let result = server::serve(&daemon, door, signals, &mut engine_ended).await;
    attendants.shutdown().await;
    worker.stop();
    if result.is_ok() {
        // So that requests which it still holds get their log lines; a step that takes longer is left behind.
        let _step_in_progress = tokio::time::timeout(ENGINE_STOP, &mut engine_ended).await;
    }
    tracing::info!(uptime_s = daemon.started.elapsed().as_secs(), "ended");
    drop(hold);
    result
}

/// Locks a value that is only ever changed whole, so that a panic elsewhere left it whole.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns how many threads compute best: one per physical performance core, and no more than the system lets run at
/// once (affinity and the quota of a control group).
fn cores(platform: &dyn Platform) -> NonZeroUsize {
    let allowed = std::thread::available_parallelism().ok();
    let cores = platform.performance_cores().and_then(NonZeroUsize::new);
    match (cores, allowed) {
        (Some(cores), Some(allowed)) => cores.min(allowed),
        (one, other) => one.or(other).unwrap_or(NonZeroUsize::MIN),
    }
}
