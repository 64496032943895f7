//! `tandem daemon start`, `stop` and `restart`.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tandem_client::launch::{self, Holder, Outcome};
use tandem_client::{Client, Error, Paths, Retry};

use crate::args::StopArgs;
use crate::failure::Failure;
use crate::progress::Waiting;
use crate::startup;

const POLL: Duration = Duration::from_millis(50);
/// How long the daemon may take to say which process it is, where its lock file does not.
const ANSWER: Duration = Duration::from_secs(10);
/// What ending may take beyond the drain, before the process is killed.
const MARGIN: Duration = Duration::from_secs(10);
/// How long requests may go on where nobody says it: what the configuration says by default.
const USUAL_DRAIN: Duration = Duration::from_secs(20);

pub(crate) async fn start() -> Result<(), Failure> {
    let (client, outcome) = startup::start(&Paths::from_env()?, false).await?;
    let socket = client.socket().display();
    match outcome {
        Outcome::AlreadyServing => say!("the daemon is serving already on {socket}"),
        Outcome::Serving { elapsed } => {
            let elapsed = elapsed.as_secs_f64();
            say!("the daemon serves on {socket} after {elapsed:.1} s");
        }
        Outcome::NotLoaded { pair, error } => return Err(Failure::NotLoaded { pair, error }),
    }
    Ok(())
}

pub(crate) async fn stop(args: StopArgs) -> Result<(), Failure> {
    let paths = Paths::from_env()?;
    let Some(pid) = running(&paths).await? else {
        say!("no daemon is running on {}", paths.socket.display());
        return Ok(());
    };
    end(pid, args.timeout).await?;
    say!("the daemon (process {pid}) has ended");
    Ok(())
}

pub(crate) async fn restart(args: StopArgs) -> Result<(), Failure> {
    stop(args).await?;
    start().await
}

/// Returns the daemon's process, where there is one: as its lock file says, which one that hangs or is ending still holds,
/// else as it says itself.
async fn running(paths: &Paths) -> Result<Option<u32>, Failure> {
    if let Some(pid) = Holder::find(paths).and_then(|holder| holder.pid) {
        return Ok(Some(pid));
    }
    let client = Client::new(launch::socket(paths))?.with_retry(Retry::never());
    match launch::ask(paths, ANSWER, client.status()).await {
        Ok(status) => Ok(Some(status.pid)),
        Err(Error::Ending { pid, .. }) if pid.is_some() => Ok(pid),
        Err(error) if error.is_unavailable() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Asks a process to end, and waits until it is gone, at most for `limit`. One that does not end within the time that its
/// requests may take is killed, as service managers do.
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
    signal(process, Signal::TERM)?;
    // A process that is stopped hears of nothing else before.
    signal(process, Signal::CONT)?;
    let begin = Instant::now();
    let paths = Paths::from_env()?;
    let drain = startup::drain_limit(&paths).unwrap_or(USUAL_DRAIN);
    // It says itself how long it needs, if it has heard.
    let mut what = format!("waiting for the daemon (process {pid}) to end");
    let (mut said, mut patience) = (false, drain.saturating_add(MARGIN));
    let mut was_killed = false;
    let mut waiting = Waiting::new(false);
    while is_alive(process) {
        let elapsed = begin.elapsed();
        if elapsed > limit {
            return Err(Failure::StillRunning {
                pid,
                limit_s: limit.as_secs(),
            });
        }
        let left = Holder::find(&paths)
            .filter(|holder| holder.pid == Some(pid))
            .and_then(|holder| holder.drains_for);
        if let Some(left) = left.filter(|_| !said) {
            (said, patience) = (true, elapsed.saturating_add(left).saturating_add(MARGIN));
            let left = left.as_secs();
            what.push_str(&format!("; it finishes requests for {left} s at most"));
        }
        // The number may be another process's by now, or another container's.
        let holds = || Holder::find(&paths).is_some_and(|holder| holder.pid == Some(pid));
        if elapsed > patience && !was_killed && holds() {
            let waited = elapsed.as_secs();
            say!(
                "the daemon (process {pid}) has not ended within {waited} s and is killed; what it had not finished is lost"
            );
            signal(process, Signal::KILL)?;
            was_killed = true;
        }
        waiting.show(&what, None, elapsed);
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn signal(process: Pid, signal: Signal) -> Result<(), Failure> {
    match kill_process(process, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(source) => {
            let pid = process.as_raw_nonzero();
            Err(Failure::io(format!("stop process {pid}"), source.into()))
        }
    }
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
