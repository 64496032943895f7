//! The engine thread: the only place where engines run. Commands come in over a channel; outputs go to each request's own
//! [`Sink`](crate::replies::Sink). One thread serves all engines, one step of each in turn, and sleeps in the channel when
//! no engine has work.
//!
//! It must not know gRPC or files: loading happens elsewhere and hands a ready engine over. Nor does it free what takes
//! long to free: engines and drafts that are no longer needed are handed out again.

mod awake;
mod command;
mod decode;
mod lane;
mod live;
mod loss;
mod progress;
mod rooms;
mod waiting;
mod weights;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use tandem_engine::Request;
use tokio::sync::{Notify, oneshot};

pub(crate) use command::{Restored, Worker};

use awake::Awake;
use command::Command;
pub(crate) use decode::Decode;
use lane::{Lane, Tell};
pub(crate) use progress::Progress;
use progress::What;

use crate::events::Events;
use crate::platform::Platform;
use crate::record::{Record, Totals};
use crate::replies::Sink;
use crate::residency::{LaneId, Lease, Reservation};

/// A request on its way into an engine, with everything that belongs to it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    /// Fail rather than decode plainly.
    pub(crate) require_speculation: bool,
    pub(crate) record: Record,
    pub(crate) sink: Sink,
    pub(crate) reservation: Reservation,
    /// Says on which load the request runs, and keeps that there.
    pub(crate) lease: Lease,
}

/// Starts the thread; the receiver ends when the thread does.
///
/// # Errors
/// When the system has no thread left.
pub(crate) fn start(
    totals: Arc<Totals>,
    events: Events,
    platform: Arc<dyn Platform>,
) -> std::io::Result<(Worker, oneshot::Receiver<()>)> {
    // Requests hold room while they are in it, which bounds it; other commands wait for their answers.
    let (commands, inbox) = channel();
    let (alive, ended) = oneshot::channel();
    let progress = Progress::default();
    let draft_losses = Arc::new(Notify::new());
    let thread = EngineThread {
        inbox,
        lanes: BTreeMap::new(),
        totals,
        events,
        awake: Awake::new(platform),
        progress: progress.clone(),
        draft_losses: Arc::clone(&draft_losses),
        budget: u64::MAX,
        held: false,
        arrivals: 0,
    };
    std::thread::Builder::new()
        .name("tandem-engine".to_owned())
        .spawn(move || {
            let _alive: oneshot::Sender<()> = alive;
            thread.run();
        })?;
    Ok((Worker::new(commands, progress, draft_losses), ended))
}

struct EngineThread {
    inbox: Receiver<Command>,
    lanes: BTreeMap<LaneId, Lane>,
    totals: Arc<Totals>,
    awake: Awake,
    events: Events,
    progress: Progress,
    draft_losses: Arc<Notify>,
    /// For weights and caches of all engines, in bytes.
    budget: u64,
    /// Whether no more requests are to run at once than did.
    held: bool,
    /// Requests so far.
    arrivals: u64,
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
            self.share_room();
            let mut lost = Vec::new();
            for (id, lane) in &mut self.lanes {
                if lane.has_requests() && !lane.turn(&self.totals, &self.progress) {
                    lost.push(*id);
                }
            }
            for id in lost {
                self.drop_lost(id);
            }
        }
    }

    /// Returns the next command if there is one; waits for it if there is nothing else to do.
    fn next_command(&mut self) -> Result<Option<Command>, ()> {
        let busy = self.lanes.values().any(Lane::has_requests);
        self.awake.follow(busy);
        if busy {
            match self.inbox.try_recv() {
                Ok(command) => Ok(Some(command)),
                Err(TryRecvError::Empty) => Ok(None),
                Err(TryRecvError::Disconnected) => Err(()),
            }
        } else {
            self.progress.rest();
            self.inbox.recv().map(Some).map_err(|_| ())
        }
    }

    /// Returns whether to go on.
    fn obey(&mut self, command: Command) -> bool {
        match command {
            Command::Install {
                resident,
                pair,
                mut engine,
                done,
            } => {
                engine.hold(self.held);
                let id = resident.lane;
                let tell = Tell {
                    events: self.events.clone(),
                    draft_losses: Arc::clone(&self.draft_losses),
                };
                let lane = Lane::new(pair, resident, engine, tell);
                self.lanes.insert(id, lane);
                self.share_room();
                // Who asked may be gone; the lane is there all the same, and is removed by name.
                let _gone = done.send(());
            }
            Command::Submit(job) => self.submit(*job),
            Command::Remove { lane, done } => {
                let lane = self.lanes.remove(&lane);
                let _gone = done.send(lane.map(Lane::into_engine));
            }
            Command::Shed { lane, reason, done } => {
                if let Some(lane) = self.lanes.get_mut(&lane) {
                    self.progress.begin(What::Shed, lane.name());
                    let _gone = done.send(lane.shed(reason));
                }
            }
            Command::Restore { lane, draft, done } => {
                if let Some(lane) = self.lanes.get_mut(&lane) {
                    self.progress.begin(What::Restore, lane.name());
                    lane.restore(*draft, done);
                }
            }
            Command::Hold(hold) => {
                self.held = hold;
                for lane in self.lanes.values_mut() {
                    lane.hold(hold);
                }
            }
            Command::Trim(done) => {
                for lane in self.lanes.values_mut() {
                    self.progress.begin(What::Trim, lane.name());
                    lane.trim();
                }
                let _gone = done.send(());
            }
            Command::Budget(bytes) => {
                self.budget = bytes;
                self.share_room();
            }
            Command::Stop => return false,
        }
        true
    }

    fn submit(&mut self, job: Job) {
        let id = job.lease.resident.lane;
        let Some(lane) = self.lanes.get_mut(&id) else {
            return live::refuse_lost(job);
        };
        self.progress.begin(What::Submit, lane.name());
        self.arrivals += 1;
        if !lane.submit(job, self.arrivals) {
            self.drop_lost(id);
        }
    }

    /// Says how much cache each engine may come to use.
    fn share_room(&mut self) {
        let weights = self.lanes.values().map(Lane::weights);
        let pool = self.budget.saturating_sub(weights.sum());
        let claims: Vec<_> = self.lanes.values().map(Lane::claim).collect();
        let rooms = rooms::share(pool, &claims);
        for (lane, room) in self.lanes.values_mut().zip(rooms) {
            lane.set_room(pool, room);
        }
    }

    /// Drops an engine that failed; that it may panic on the way must not end the thread.
    fn drop_lost(&mut self, id: LaneId) {
        let lane = self.lanes.remove(&id);
        if catch_unwind(AssertUnwindSafe(move || drop(lane))).is_err() {
            tracing::error!("the lost engine panicked while it was dropped");
        }
    }
}

#[cfg(test)]
mod rig;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tiny;
