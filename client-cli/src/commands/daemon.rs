//! `tandem daemon start`, `stop` and `restart`.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tandem_client::launch::Outcome;
use tandem_client::{Client, Paths, Retry};

use crate::args::StopArgs;
use crate::failure::Failure;
use crate::progress::Waiting;
use crate::startup;

const POLL: Duration = Duration::from_millis(50);

pub(crate) async fn start() -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let client = Client::new(&paths.socket)?;
    match startup::start(&client, &paths, false).await? {
        Outcome::AlreadyServing => eprintln!(
            "the daemon is serving already on {}",
            paths.socket.display()
        ),
        Outcome::Serving { elapsed } => {
            eprintln!(
                "the daemon serves on {} after {:.1} s",
                paths.socket.display(),
                elapsed.as_secs_f64()
            );
        }
        Outcome::NotLoaded { pair, error } => return Err(Failure::NotLoaded { pair, error }),
    }
    Ok(())
}

pub(crate) async fn stop(args: StopArgs) -> Result<(), Failure> {
    let client = Client::from_env()?.with_retry(Retry::never());
    let pid = match client.status().await {
        Ok(status) => status.pid,
        Err(error) if error.is_unavailable() => {
            eprintln!("no daemon is running on {}", client.socket().display());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    end(pid, args.timeout).await?;
    eprintln!("the daemon (process {pid}) has ended");
    Ok(())
}

pub(crate) async fn restart(args: StopArgs) -> Result<(), Failure> {
    stop(args).await?;
    start().await
}

/// Asks a process to end, and waits until it is gone.
pub(crate) async fn end(pid: u32, limit: Duration) -> Result<(), Failure> {
    // 0 and negative numbers would address groups of processes.
    let process = i32::try_from(pid)
        .ok()
        .filter(|pid| *pid > 0)
        .and_then(Pid::from_raw)
        .ok_or_else(|| {
            let source = std::io::Error::other(format!(
                "the daemon says that it is process {pid}, which cannot be"
            ));
            Failure::io("stop the daemon", source)
        })?;
    if let Err(source) = kill_process(process, Signal::TERM)
        && source != rustix::io::Errno::SRCH
    {
        return Err(Failure::io(format!("stop process {pid}"), source.into()));
    }
    let begin = Instant::now();
    let mut waiting = Waiting::new(false);
    while is_alive(process) {
        if begin.elapsed() > limit {
            return Err(Failure::StillRunning {
                pid,
                limit_s: limit.as_secs(),
            });
        }
        waiting.show(
            "waiting for running requests to finish",
            None,
            begin.elapsed(),
        );
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Says whether a process runs. One that ended, but whose parent has not noticed, does not.
fn is_alive(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()))
        .unwrap_or_default();
    let is_zombie = stat
        .rsplit_once(") ")
        .is_some_and(|(_, fields)| fields.starts_with('Z'));
    test_kill_process(process).is_ok() && !is_zombie
}
