//! The engine thread: the only place where engines run. Commands come in over a bounded channel; outputs go to each
//! request's own [`Sink`](crate::replies::Sink). One thread serves all pairs, one step of each in turn, and sleeps in
//! the channel when no engine has work.
//!
//! It must not know gRPC or files: loading happens elsewhere and hands a ready engine over.

mod awake;
mod decode;
mod lane;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};

use tandem_engine::Request;
use tokio::sync::oneshot;

use crate::pair::{Pair, Reservation, Warm};
use crate::platform::Platform;
use crate::record::{Record, Totals};
use crate::replies::Sink;

use awake::Awake;
pub(crate) use decode::Decode;
use lane::Lane;

/// Commands that do not come from requests: one per pair when it is loaded, and the end.
const SPARE_COMMANDS: usize = 16;

/// A request on its way into an engine, with everything that belongs to it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    /// Fail rather than decode plainly.
    pub(crate) require_speculation: bool,
    pub(crate) record: Record,
    pub(crate) sink: Sink,
    pub(crate) reservation: Reservation,
}

/// What the engine thread can be told.
enum Command {
    Install {
        pair: Arc<Pair>,
        warm: Arc<Warm>,
        engine: Box<dyn Decode>,
    },
    Submit {
        pair: usize,
        job: Box<Job>,
    },
    Stop,
}

/// A handle to the engine thread; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    commands: SyncSender<Command>,
}

impl Worker {
    /// Starts the thread; the receiver ends when the thread does. `requests` is the number of reservations that all pairs together give out: since each job
    /// holds one, as many commands always suffice and sending never waits.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(
        pairs: usize,
        requests: usize,
        totals: Arc<Totals>,
        platform: Arc<dyn Platform>,
    ) -> std::io::Result<(Self, oneshot::Receiver<()>)> {
        let (commands, inbox) = sync_channel(requests + pairs + SPARE_COMMANDS);
        let lanes = std::iter::repeat_with(|| None).take(pairs).collect();
        let (alive, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name("tandem-engine".to_owned())
            .spawn(move || {
                let _alive: oneshot::Sender<()> = alive;
                EngineThread {
                    inbox,
                    lanes,
                    totals,
                    awake: Awake::new(platform),
                }
                .run();
            })?;
        Ok((Self { commands }, ended))
    }

    /// Hands over an engine; its pair becomes warm once the thread has it.
    pub(crate) fn install(&self, pair: Arc<Pair>, warm: Arc<Warm>, engine: Box<dyn Decode>) {
        self.send(Command::Install { pair, warm, engine });
    }

    /// Hands over a request for a pair that is warm. Whatever becomes of it, its sink hears.
    pub(crate) fn submit(&self, pair: usize, job: Job) {
        self.send(Command::Submit {
            pair,
            job: Box::new(job),
        });
    }

    /// Ends the thread after the step in progress; requests that still run end with INTERNAL.
    pub(crate) fn stop(&self) {
        self.send(Command::Stop);
    }

    fn send(&self, command: Command) {
        match self.commands.try_send(command) {
            Ok(()) => {}
            // The sinks inside a command that is dropped here tell their streams.
            Err(TrySendError::Full(_)) => {
                tracing::error!("the engine thread's inbox is full, which cannot happen")
            }
            Err(TrySendError::Disconnected(_)) => tracing::error!("the engine thread is gone"),
        }
    }
}

struct EngineThread {
    inbox: Receiver<Command>,
    /// By pair index; `None`: not loaded, or lost.
    lanes: Vec<Option<Lane>>,
    totals: Arc<Totals>,
    awake: Awake,
}

impl EngineThread {
    fn run(mut self) {
        loop {
            // Commands go before steps, so that no request waits longer than one step to be seen.
            loop {
                match self.next_command() {
                    Ok(Some(command)) => {
                        if !self.obey(command) {
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(()) => return,
                }
            }
            for slot in &mut self.lanes {
                if slot
                    .as_mut()
                    .is_some_and(|lane| lane.has_requests() && !lane.turn(&self.totals))
                {
                    drop_lost(slot);
                }
            }
        }
    }

    /// Returns the next command if there is one; waits for it if there is nothing else to do.
    fn next_command(&mut self) -> Result<Option<Command>, ()> {
        let busy = self.lanes.iter().flatten().any(Lane::has_requests);
        self.awake.follow(busy);
        if busy {
            match self.inbox.try_recv() {
                Ok(command) => Ok(Some(command)),
                Err(TryRecvError::Empty) => Ok(None),
                Err(TryRecvError::Disconnected) => Err(()),
            }
        } else {
            self.inbox.recv().map(Some).map_err(|_| ())
        }
    }

    /// Returns whether to go on.
    fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Install { pair, warm, engine } => {
                let index = pair.index;
                self.lanes[index] = Some(Lane::new(Arc::clone(&pair), engine));
                pair.set_warm(warm);
            }
            Command::Submit { pair, job } => match &mut self.lanes[pair] {
                Some(lane) => {
                    if !lane.submit(*job) {
                        drop_lost(&mut self.lanes[pair]);
                    }
                }
                None => lane::refuse_lost(*job),
            },
            Command::Stop => return false,
        }
        true
    }
}

/// Drops an engine that failed; that it may panic on the way must not end the thread.
fn drop_lost(slot: &mut Option<Lane>) {
    let lane = slot.take();
    if catch_unwind(AssertUnwindSafe(move || drop(lane))).is_err() {
        tracing::error!("the lost engine panicked while it was dropped");
    }
}

#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tiny;
