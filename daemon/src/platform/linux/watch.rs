//! A thread that sleeps until the kernel says that memory is short: poll(2) for POLLPRI.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cgroup::{Events, Group};
use super::recent::Recent;
use super::space::Space;
use super::trigger;
use crate::platform::{OnPressure, Pressure, PressureWatch};

/// Something that becomes ready when memory is short.
#[derive(Debug)]
pub(super) enum Source {
    /// Ready means stalls of this level, in this space.
    Trigger(File, Pressure, Space),
    /// Ready means that counts have changed.
    Limits {
        file: File,
        group: Group,
        seen: Events,
    },
}

impl Source {
    /// Opens a trigger per level on a file of stalls; none where the kernel or its settings forbid it.
    pub(super) fn stalls(path: &Path, space: &Space) -> Vec<Self> {
        let open = |level| {
            trigger::open(path, level)
                .inspect_err(|error| tracing::debug!(path = %path.display(), %error, "no trigger"))
                .map(|file| Self::Trigger(file, level, space.clone()))
        };
        [Pressure::Warn, Pressure::Critical]
            .into_iter()
            .flat_map(open)
            .collect()
    }

    /// Opens the counts of a group's limits, where it has any.
    pub(super) fn limits(group: Group) -> Option<Self> {
        let file = File::open(group.events_file()).ok()?;
        let seen = read_events(&file).ok()?;
        Some(Self::Limits { file, group, seen })
    }

    pub(super) fn is_trigger(&self) -> bool {
        matches!(self, Self::Trigger(..))
    }

    /// Returns what it means that this is ready.
    fn look(&mut self) -> io::Result<Pressure> {
        match self {
            Self::Trigger(_, level, space) => Ok(space.confirm(*level)),
            Self::Limits { file, group, seen } => {
                let now = read_events(file)?;
                let before = std::mem::replace(seen, now);
                Ok(group.level(before, now))
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Trigger(file, ..) | Self::Limits { file, .. } => file.as_fd(),
        }
    }
}

/// Calls `on_change` when a source is ready, and when all have been quiet for `hold`.
pub(super) fn watch(
    sources: Vec<Source>,
    hold: Duration,
    on_change: OnPressure,
) -> io::Result<PressureWatch> {
    let (end, ended) = UnixStream::pair()?;
    thread::Builder::new()
        .name("tandem-pressure".to_owned())
        .spawn(move || run(sources, hold, &ended, &on_change))?;
    Ok(PressureWatch::new(move || drop(end)))
}

fn run(mut sources: Vec<Source>, hold: Duration, ended: &UnixStream, on_change: &OnPressure) {
    let mut recent = Recent::new(hold);
    let mut told = Pressure::Normal;
    loop {
        let now = Instant::now();
        let level = recent.level(now);
        if level != told {
            told = level;
            on_change(level);
        }
        let ready = match wait(&sources, ended, recent.until_fall(now)) {
            Ok(Some(ready)) => ready,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "memory pressure is not watched any more");
                return;
            }
        };
        let now = Instant::now();
        let mut flags = ready.into_iter();
        sources.retain_mut(|source| match flags.next().unwrap_or(PollFlags::empty()) {
            flags if flags.intersects(PollFlags::ERR | PollFlags::NVAL) && source.is_trigger() => {
                false // its group is gone
            }
            flags if flags.is_empty() => true,
            _ => source
                .look()
                .inspect(|level| recent.saw(*level, now))
                .is_ok(),
        });
    }
}

/// Waits, and returns how each source is ready; `None` when the watch was dropped.
fn wait(
    sources: &[Source],
    ended: &UnixStream,
    limit: Option<Duration>,
) -> io::Result<Option<Vec<PollFlags>>> {
    let mut fds = vec![PollFd::new(ended, PollFlags::IN)];
    fds.extend(
        sources
            .iter()
            .map(|source| PollFd::from_borrowed_fd(source.fd(), PollFlags::PRI)),
    );
    // A duration that is too long for the system is as good as none.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = fds.iter().map(PollFd::revents);
    Ok(fds[0].revents().is_empty().then(|| ready.skip(1).collect()))
}

fn read_events(file: &File) -> io::Result<Events> {
    let mut text = [0; 512];
    let length = file.read_at(&mut text, 0)?;
    Ok(Events::parse(&String::from_utf8_lossy(&text[..length])))
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
