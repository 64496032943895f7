//! Daemons that exist for a benchmark alone: on a socket of their own, with a configuration of their own, and gone with it.
//!
//! They use the models and the prepared weights of the user, so nothing is fetched or prepared twice.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tandem_client::v1::Residency;
use tandem_client::{Client, Health, Retry};
use tempfile::TempDir;
use toml::Table;

use crate::BenchError;
use crate::method::Serving;
use crate::pair::PairChoice;

const POLL: Duration = Duration::from_millis(5);
/// A large model whose weights have yet to be prepared takes minutes on a slow disk.
const START_LIMIT: Duration = Duration::from_secs(600);
/// A daemon that was told to end does so at once.
const END_LIMIT: Duration = Duration::from_secs(5);
const LOG_LINES: usize = 15;

/// How a daemon is started.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program.
    pub path: PathBuf,
    /// Its arguments; it takes all else from the environment.
    pub args: Vec<OsString>,
}

/// A running daemon of ours. Dropping it ends the process and removes its files.
#[derive(Debug)]
pub(crate) struct PrivateDaemon {
    child: Child,
    client: Client,
    serving: Serving,
    directory: TempDir,
    started: Duration,
}

impl PrivateDaemon {
    /// Starts a daemon and waits until it serves. Dropping the future ends it, too.
    pub(crate) async fn start(
        program: &Program,
        pair: &PairChoice,
        serving: Serving,
        settings: &Table,
    ) -> Result<Self, BenchError> {
        let directory = directory()?;
        let config = directory.path().join("config.toml");
        fs::write(&config, pair.config(serving, settings))
            .map_err(BenchError::file("write", &config))?;
        let socket = directory.path().join("d.sock");
        let client = Client::new(&socket)
            .map_err(|error| match error {
                tandem_client::Error::Paths(error) => BenchError::SocketPath(error),
                error => error.into(),
            })?
            .with_retry(Retry::never());
        let log_path = directory.path().join("log");
        let log = File::create(&log_path).map_err(BenchError::file("write", &log_path))?;
        let errors = log
            .try_clone()
            .map_err(BenchError::file("write", &log_path))?;
        let began = Instant::now();
        // In the process group of this program: Ctrl-C in its terminal is for the daemon as well.
        let child = Command::new(&program.path)
            .args(&program.args)
            .env("TANDEM_SOCKET", &socket)
            .env("TANDEM_CONFIG", &config)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|source| BenchError::Spawn {
                program: program.path.clone(),
                source,
            })?;
        let mut daemon = Self {
            child,
            client,
            serving,
            directory,
            started: Duration::ZERO,
        };
        daemon.wait(began).await?;
        daemon.started = began.elapsed();
        daemon.client = daemon.client.clone().with_retry(Retry::default());
        Ok(daemon)
    }

    async fn wait(&mut self, began: Instant) -> Result<(), BenchError> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(BenchError::Exited {
                    serving: self.serving.to_string(),
                    status: status.to_string(),
                    log: self.log(),
                });
            }
            match self.client.health().await {
                Ok(Health::Serving) => return Ok(()),
                Ok(Health::NotServing) => self.check_pair().await?,
                Err(error) if error.is_unavailable() => {}
                Err(error) => return Err(error.into()),
            }
            if began.elapsed() > START_LIMIT {
                return Err(BenchError::TimedOut {
                    serving: self.serving.to_string(),
                    limit_s: START_LIMIT.as_secs(),
                    log: self.log(),
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Fails where the pair could not be loaded.
    async fn check_pair(&self) -> Result<(), BenchError> {
        // The daemon may end between the two calls; the next turn finds that out.
        let pairs = self.client.list_pairs().await.unwrap_or_default();
        let failed = pairs
            .into_iter()
            .find(|pair| pair.residency() == Residency::Cold && !pair.error.is_empty());
        failed.map_or(Ok(()), |pair| {
            Err(BenchError::NotLoaded {
                serving: self.serving.to_string(),
                problem: pair.error,
            })
        })
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn serving(&self) -> Serving {
        self.serving
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How long it took from the start of the process until it served.
    pub(crate) fn started_after(&self) -> Duration {
        self.started
    }

    fn log(&self) -> String {
        // It only explains another failure.
        let log = fs::read(self.directory.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Drop for PrivateDaemon {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid
            && kill_process(pid, Signal::TERM).is_ok()
        {
            let asked = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) && asked.elapsed() < END_LIMIT {
                std::thread::sleep(POLL);
            }
        }
        // Both fail only where the process is gone already.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Makes a directory in which a socket can lie. Temporary directories of macOS are long, those of Linux need not be short.
fn directory() -> Result<TempDir, BenchError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("tandem-bench-");
    let usual = std::env::temp_dir();
    let fits = |parent: &Path| parent.as_os_str().len() < 70;
    if fits(&usual) {
        builder.tempdir()
    } else {
        builder.tempdir_in("/tmp")
    }
    .map_err(BenchError::file("make a directory in", usual))
}
