//! Taking pairs out of memory.

use std::sync::Arc;
use std::time::Instant;

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::task::JoinError;

use super::{LaneId, Pair, PairState, Residency, Resident};
use crate::config::format_bytes;
use crate::convert::count;
use crate::{events, lock};

impl Residency {
    /// Unloads a pair that nobody uses; returns whether it did.
    pub(crate) async fn unload_idle(&self, pair: &Arc<Pair>, reason: &str) -> bool {
        let _one_at_a_time = self.memory.lock().await;
        // Nobody can come to use it between this look and the new state.
        let Some(resident) = pair.drain(|resident| resident.users() == 0) else {
            return false;
        };
        pair.enter(PairState::Unloading);
        self.take_out(&resident, reason).await;
        pair.enter(PairState::Cold(None));
        true
    }

    /// Lets requests end on a load that no longer serves, and then takes it out, on a task of its own.
    pub(super) fn retire(
        self: &Arc<Self>,
        pair: &Arc<Pair>,
        resident: Arc<Resident>,
        reason: &'static str,
    ) {
        self.tell_draining(&resident);
        let (this, pair) = (Arc::clone(self), Arc::clone(pair));
        pair.count_retiring(1);
        tokio::spawn(async move {
            resident.unused().await;
            this.take_out(&resident, reason).await;
            pair.count_retiring(-1);
        });
    }

    pub(super) fn tell_draining(&self, resident: &Resident) {
        let running = count(resident.users());
        tracing::info!(pair = %resident.name, running, "draining");
        let draining = v1::PairDraining { running };
        self.events.tell(&resident.name, Event::Draining(draining));
    }

    /// Takes a load that nobody uses off the engine thread and frees its memory.
    pub(super) async fn take_out(&self, resident: &Arc<Resident>, reason: &str) {
        let begun = Instant::now();
        let before = self.footprint().await;
        let engine = self.worker.remove(resident.lane).await;
        // Not on the engine thread: giving back much memory takes a while.
        if let Err(error) = self.aside(move || drop(engine)).await {
            tracing::error!(pair = %resident.name, %error, "the engine failed while it was dropped");
        }
        self.forget(resident.lane);
        let freed = freed(before, self.footprint().await);
        let took = begun.elapsed();
        tracing::info!(
            pair = %resident.name,
            reason,
            freed_bytes = freed,
            freed = format_bytes(freed),
            ms = took.as_secs_f64() * 1e3,
            "unloaded"
        );
        self.events
            .tell(&resident.name, events::unloaded(reason, freed, took));
    }

    /// Counts a load no longer.
    fn forget(&self, lane: LaneId) {
        if let Some(resident) = lock(&self.living).remove(&lane) {
            lock(&self.past).merge(&resident.readings().speculation);
        }
    }

    /// Does work that reads or drops models, apart from the threads that decode and serve connections. What it no longer
    /// uses goes back to the system.
    ///
    /// # Errors
    /// Where it panicked.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let platform = Arc::clone(&self.platform);
        let work = move || {
            let done = work();
            platform.give_back();
            done
        };
        tokio::task::spawn_blocking(work).await
    }

    /// Gives what the allocator keeps back to the system.
    pub(crate) async fn give_back(&self) {
        // That is what comes with any work aside.
        if let Err(error) = self.aside(|| ()).await {
            tracing::error!(%error, "giving memory back failed");
        }
    }

    /// Reads the footprint in bytes; `None`: the system does not say.
    pub(crate) async fn footprint(&self) -> Option<u64> {
        let platform = Arc::clone(&self.platform);
        // It walks page tables, which takes milliseconds for large processes.
        let read = tokio::task::spawn_blocking(move || platform.footprint()).await;
        match read {
            Ok(Ok(bytes)) => Some(bytes),
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot read the footprint");
                None
            }
            Err(error) => {
                tracing::error!(%error, "reading the footprint failed");
                None
            }
        }
    }
}

/// Returns how many bytes the footprint shrank by: only what the system no longer charges was freed.
pub(super) fn freed(before: Option<u64>, after: Option<u64>) -> u64 {
    match (before, after) {
        (Some(before), Some(after)) => before.saturating_sub(after),
        _ => 0,
    }
}
