//! Bringing the daemon up before a call.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tandem_bench::Program;
use tandem_client::launch::{self, Launcher, Outcome, Progress, find_daemon};
use tandem_client::{Client, Error, Paths, Retry};
use tandem_models::{ModelRef, PullError, Store};

use crate::args::TargetArgs;
use crate::commands::pull;
use crate::failure::Failure;
use crate::progress::Waiting;
use crate::summary::{load_percent, load_stage};

/// Returns a client of the daemon of this environment, which is started first unless the arguments forbid it.
pub(crate) async fn client(target: &TargetArgs, quiet: bool) -> Result<Client, Failure> {
    if target.no_start {
        return Ok(Client::from_env()?);
    }
    // A pair that did not load is the answer to the call itself, which may name another pair.
    Ok(start(&Paths::from_env()?, quiet).await?.0)
}

/// Does `work`, which waits for the daemon, unless that says nothing any more.
pub(crate) async fn attended<T>(
    client: &Client,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let paths = Paths::from_env()?;
    tokio::select! {
        done = work => done,
        silence = launch::silence(&paths, client) => Err(silence.into()),
    }
}

/// Starts the daemon where none runs, and waits until it serves or gave up loading its default pair.
pub(crate) async fn start(paths: &Paths, quiet: bool) -> Result<(Client, Outcome), Failure> {
    let client = Client::new(launch::socket(paths))?.with_retry(Retry::never());
    let none_answers = match client.health().await {
        Ok(_) | Err(Error::DeadlineExceeded { .. }) => false,
        Err(error) if error.is_unavailable() => true,
        Err(error) => return Err(error.into()),
    };
    if none_answers {
        let paths = paths.clone();
        // Aside, so that a time limit or Ctrl-C does not wait for a download.
        tokio::task::spawn_blocking(move || ensure_models(&paths, quiet))
            .await
            .map_err(|problem| Failure::io("fetch models", io::Error::other(problem)))??;
    }
    let mut waiting = Waiting::new(quiet);
    let mut ending = None;
    let mut show = |progress| match progress {
        Progress::Starting { elapsed } => waiting.show("starting the daemon", None, elapsed),
        Progress::Ending { elapsed, pid, left } => {
            // As it was first: a line that changes every second would be printed every second.
            let what = ending.get_or_insert_with(|| {
                let process = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
                let left = left.as_secs();
                format!("waiting for the daemon{process} to end; it finishes requests for {left} s at most")
            });
            waiting.show(what, None, elapsed);
        }
        Progress::Loading {
            elapsed,
            load: None,
        } => waiting.show("loading the models", None, elapsed),
        Progress::Loading {
            elapsed,
            load: Some(load),
        } => waiting.show(load_stage(&load), load_percent(&load), elapsed),
    };
    Ok(launcher(paths.clone())?.connect(&mut show).await?)
}

/// Fetches the configured models that are missing, so that the daemon never has to.
pub(crate) fn ensure_models(paths: &Paths, quiet: bool) -> Result<(), Failure> {
    ensure_fetched(paths, configured_models(paths), quiet)
}

/// Fetches those of these models that are missing.
///
/// # Errors
/// Where no source has one of them.
pub(crate) fn ensure_fetched(
    paths: &Paths,
    models: Vec<ModelRef>,
    quiet: bool,
) -> Result<(), Failure> {
    let store = Store::from_env(paths.models_dir()).map_err(PullError::from)?;
    for model in models {
        let is_remote = matches!(model, ModelRef::Hub(_));
        if is_remote && store.locate(&model).map_err(PullError::from)?.is_none() {
            pull::fetch(&store, &model, quiet)?;
        }
    }
    Ok(())
}

/// Returns the models of all pairs; none where the configuration is wrong, which the daemon reports when it starts.
#[cfg(feature = "daemon")]
fn configured_models(paths: &Paths) -> Vec<ModelRef> {
    let Ok(config) = tandem_daemon::config::Config::load(&paths.config_file, false) else {
        return Vec::new();
    };
    config
        .pairs
        .into_values()
        .flat_map(|pair| [Some(pair.target), pair.draft.file().cloned()])
        .flatten()
        .collect()
}

/// Returns how long the daemon lets requests go on when it is to end.
#[cfg(feature = "daemon")]
pub(crate) fn drain_limit(paths: &Paths) -> Result<Duration, Failure> {
    tandem_daemon::config::Config::load(&paths.config_file, false)
        .map(|config| config.server.drain)
        .map_err(|error| Failure::Config(error.to_string()))
}

/// Returns the most that a configuration can say, because only the daemon reads it.
#[cfg(not(feature = "daemon"))]
pub(crate) fn drain_limit(_: &Paths) -> Result<Duration, Failure> {
    Ok(Duration::from_secs(3600))
}

/// Returns the default pair. With a configuration file the models are what that says, and only the daemon reads it.
#[cfg(not(feature = "daemon"))]
fn configured_models(paths: &Paths) -> Vec<ModelRef> {
    if paths.config_file.exists() {
        Vec::new()
    } else {
        vec![ModelRef::default_target(), ModelRef::default_draft()]
    }
}

/// Returns the program that a private daemon is started with.
///
/// # Errors
/// Where there is none.
pub(crate) fn program() -> Result<Program, Failure> {
    let named = std::env::var_os("TANDEM_DAEMON").filter(|program| !program.is_empty());
    if cfg!(feature = "daemon") && named.is_none() {
        return Ok(Program {
            path: own_program()?,
            args: vec!["daemon".into(), "run".into()],
        });
    }
    Ok(Program {
        path: find_daemon().map_err(Error::from)?,
        args: Vec::new(),
    })
}

/// Returns where this program lies; where it was replaced since it was started, where the new one does.
fn own_program() -> Result<PathBuf, Failure> {
    let path =
        std::env::current_exe().map_err(|source| Failure::io("find this program", source))?;
    // proc(5): the name of a file that was removed ends so.
    let replaced = path
        .to_str()
        .and_then(|path| path.strip_suffix(" (deleted)"));
    Ok(match replaced {
        Some(replaced) if !path.exists() => PathBuf::from(replaced),
        _ => path,
    })
}

/// This binary contains the daemon; somebody who names another one means it.
#[cfg(feature = "daemon")]
pub(crate) fn launcher(paths: Paths) -> Result<Launcher, Failure> {
    if std::env::var_os("TANDEM_DAEMON").is_some_and(|program| !program.is_empty()) {
        return Ok(Launcher::find(paths).map_err(Error::from)?);
    }
    Ok(Launcher::new(
        own_program()?,
        ["daemon".into(), "run".into()],
        paths,
    ))
}

#[cfg(not(feature = "daemon"))]
pub(crate) fn launcher(paths: Paths) -> Result<Launcher, Failure> {
    Ok(Launcher::find(paths).map_err(Error::from)?)
}
