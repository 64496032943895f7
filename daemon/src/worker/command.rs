//! What the engine thread can be told, and the handle to tell it.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use tandem_engine::engine::ShedDraft;
use tandem_engine::pair::{LoadError, LoadedDraft};
use tokio::sync::{Notify, oneshot};

use super::{Decode, Job, Progress};
use crate::residency::{LaneId, Pair, Resident};

/// How putting a draft back went.
pub(crate) type Restored = Result<(), LoadError>;

pub(super) enum Command {
    Install {
        resident: Arc<Resident>,
        pair: Arc<Pair>,
        engine: Box<dyn Decode>,
        done: oneshot::Sender<()>,
    },
    Submit(Box<Job>),
    Remove {
        lane: LaneId,
        done: oneshot::Sender<Option<Box<dyn Decode>>>,
    },
    Shed {
        lane: LaneId,
        reason: String,
        done: oneshot::Sender<ShedDraft>,
    },
    Restore {
        lane: LaneId,
        draft: Box<LoadedDraft>,
        done: oneshot::Sender<Restored>,
    },
    Hold(bool),
    Trim(oneshot::Sender<()>),
    Budget(u64),
    Stop,
}

/// A handle to the engine thread; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    commands: Sender<Command>,
    progress: Progress,
    draft_losses: Arc<Notify>,
}

impl Worker {
    pub(super) fn new(
        commands: Sender<Command>,
        progress: Progress,
        draft_losses: Arc<Notify>,
    ) -> Self {
        Self {
            commands,
            progress,
            draft_losses,
        }
    }

    /// Returns what is told whenever a draft failed.
    pub(crate) fn draft_losses(&self) -> Arc<Notify> {
        Arc::clone(&self.draft_losses)
    }

    /// Returns what the thread is doing.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Hands over an engine, and waits until the thread has it.
    pub(crate) async fn install(
        &self,
        resident: Arc<Resident>,
        pair: Arc<Pair>,
        engine: Box<dyn Decode>,
    ) {
        let (done, answer) = oneshot::channel();
        self.send(Command::Install {
            resident,
            pair,
            engine,
            done,
        });
        // A thread that is gone is told of elsewhere, and takes the daemon along.
        let _gone = answer.await;
    }

    /// Hands over a request. Whatever becomes of it, its sink hears.
    pub(crate) fn submit(&self, job: Job) {
        self.send(Command::Submit(Box::new(job)));
    }

    /// Takes an engine back; `None`: it is lost. The requests that it still has end with INTERNAL.
    pub(crate) async fn remove(&self, lane: LaneId) -> Option<Box<dyn Decode>> {
        let (done, answer) = oneshot::channel();
        self.send(Command::Remove { lane, done });
        answer.await.ok().flatten()
    }

    /// Takes the draft out of an engine after the step in progress; `None`: the engine is gone.
    pub(crate) async fn shed(&self, lane: LaneId, reason: String) -> Option<ShedDraft> {
        let (done, answer) = oneshot::channel();
        self.send(Command::Shed { lane, reason, done });
        answer.await.ok()
    }

    /// Puts a draft back into an engine, as soon as its requests allow it; `None`: the engine is gone, or shed its draft
    /// again meanwhile.
    pub(crate) async fn restore(&self, lane: LaneId, draft: LoadedDraft) -> Option<Restored> {
        let (done, answer) = oneshot::channel();
        let draft = Box::new(draft);
        self.send(Command::Restore { lane, draft, done });
        answer.await.ok()
    }

    /// Lets no more requests run at once than do now, in all engines, or as many as usual again.
    pub(crate) fn hold(&self, hold: bool) {
        self.send(Command::Hold(hold));
    }

    /// Has all engines drop the texts that they only keep to be faster, and waits until they did.
    pub(crate) async fn trim(&self) {
        let (done, answer) = oneshot::channel();
        self.send(Command::Trim(done));
        let _gone = answer.await;
    }

    /// Sets the bytes that weights and caches of all engines may take together.
    pub(crate) fn set_budget(&self, bytes: u64) {
        self.send(Command::Budget(bytes));
    }

    /// Ends the thread after the step in progress; requests that still run end with INTERNAL.
    pub(crate) fn stop(&self) {
        self.send(Command::Stop);
    }

    fn send(&self, command: Command) {
        // The sinks inside a command that is dropped here tell their streams.
        if self.commands.send(command).is_err() {
            tracing::error!("the engine thread is gone");
        }
    }
}
