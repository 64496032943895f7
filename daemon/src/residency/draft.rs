//! Giving drafts up and putting them back, while requests run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::task::JoinHandle;

use super::unload::freed;
use super::{DraftPlace, Pair, Residency, Resident};
use crate::config::format_bytes;
use crate::convert::duration;
use crate::loading::{LoadFailure, reporter};

/// What requests are told while a draft is shed.
const WHY: &str = "memory is short: the draft was shed";

/// What shedding brought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shed {
    /// By how much the footprint shrank, in bytes.
    pub(crate) freed: u64,
    /// Drafts.
    pub(crate) drafts: usize,
}

impl Residency {
    /// Sheds every draft that can be put back. Streams go on plainly after the step in progress.
    pub(crate) async fn shed_drafts(&self) -> Shed {
        let mut all = Shed::default();
        for resident in self.residents() {
            let there = matches!(
                resident.draft(),
                DraftPlace::Resident | DraftPlace::Returning { .. }
            );
            if there && let Some(freed) = self.shed(&resident).await {
                all.freed += freed;
                all.drafts += 1;
            }
        }
        all
    }

    async fn shed(&self, resident: &Arc<Resident>) -> Option<u64> {
        let begun = Instant::now();
        let before = self.footprint().await;
        // Before the engine hears, so that one that is on its way back finds that it is not wanted.
        resident.set_draft(DraftPlace::Shed { freed: 0 });
        let shed = self.worker.shed(resident.lane, WHY.to_owned()).await?;
        let unmapped = shed.mapped_bytes();
        let (weights, caches) = (shed.weight_bytes(), shed.cache_bytes());
        if let Err(error) = self.aside(move || drop(shed)).await {
            tracing::error!(pair = %resident.name, %error, "the draft failed while it was dropped");
        }
        let freed = freed(before, self.footprint().await);
        // What others gave back at the same time will not be needed to put it back.
        let own = freed.min(weights + caches);
        resident.set_draft(DraftPlace::Shed { freed: own });
        let took = begun.elapsed();
        tracing::warn!(
            pair = %resident.name,
            freed_bytes = freed,
            freed = format_bytes(freed),
            weights = format_bytes(weights),
            unmapped = format_bytes(unmapped),
            caches = format_bytes(caches),
            ms = took.as_secs_f64() * 1e3,
            "shed the draft: memory is short"
        );
        let event = v1::DraftShed {
            freed_bytes: freed,
            unmapped_bytes: unmapped,
            took: Some(duration(took)),
        };
        self.events.tell(&resident.name, Event::Shed(event));
        Some(freed)
    }

    /// Returns the bytes that drafts will be charged with that are to be put back.
    pub(crate) fn shed_bytes(&self) -> u64 {
        let residents = self.residents();
        let freed = residents.iter().map(|resident| match resident.draft() {
            DraftPlace::Shed { freed } | DraftPlace::Returning { freed } => freed,
            DraftPlace::None | DraftPlace::Resident | DraftPlace::Lost | DraftPlace::Unusable => 0,
        });
        freed.sum()
    }

    /// Puts the drafts back that were shed, on a task of its own: an exit adapter may have to wait for requests to end.
    pub(crate) fn restore_drafts(self: &Arc<Self>) {
        for pair in self.pairs() {
            let state = pair.state();
            let Some(resident) = state.resident() else {
                continue;
            };
            if let DraftPlace::Shed { freed } = resident.draft() {
                resident.set_draft(DraftPlace::Returning { freed });
                let (this, resident) = (Arc::clone(self), Arc::clone(resident));
                let shed = DraftPlace::Shed { freed };
                tokio::spawn(async move { this.restore(&pair, &resident, shed).await });
            }
        }
    }

    /// Returns the loads whose drafts failed.
    pub(super) fn lost_drafts(&self) -> Vec<(Arc<Pair>, Arc<Resident>)> {
        let pairs = self.pairs().into_iter();
        let serving = pairs.filter_map(|pair| {
            let resident = Arc::clone(pair.state().resident()?);
            (resident.draft() == DraftPlace::Lost).then_some((pair, resident))
        });
        serving.collect()
    }

    /// Loads the draft again that failed, on a task of its own, whose end says how that went.
    pub(super) fn mend(
        self: &Arc<Self>,
        pair: Arc<Pair>,
        resident: Arc<Resident>,
    ) -> JoinHandle<Result<(), String>> {
        resident.set_draft(DraftPlace::Returning { freed: 0 });
        let this = Arc::clone(self);
        tokio::spawn(async move { this.restore(&pair, &resident, DraftPlace::Lost).await })
    }

    /// Puts a draft back that is on its way; where that fails it is where it was `before`.
    ///
    /// # Errors
    /// With why it is not back.
    async fn restore(
        &self,
        pair: &Arc<Pair>,
        resident: &Arc<Resident>,
        before: DraftPlace,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let draft = {
            let _one_at_a_time = self.memory.lock().await;
            let loader = Arc::clone(&self.loader);
            let load_of = Arc::clone(resident);
            let mut progress = reporter(Arc::clone(pair), self.events.clone());
            let load = move || loader.load_draft(&load_of.recipe, &load_of.report, &mut progress);
            let loaded = self.aside(load).await;
            pair.set_load_progress(None);
            loaded.unwrap_or(Err(LoadFailure::Panic))
        };
        let wanted = || matches!(resident.draft(), DraftPlace::Returning { .. });
        let failed = |error: String| {
            tracing::error!(pair = %resident.name, error, "cannot put the draft back");
            if wanted() {
                resident.mended(false);
                resident.set_draft(before);
                if before == DraftPlace::Lost {
                    // Nobody else says that it is due again.
                    self.worker.draft_losses().notify_one();
                }
            }
            Err(error)
        };
        match draft {
            Ok(Some(_)) if !wanted() => Err(WHY.to_owned()),
            Ok(Some(draft)) => match self.worker.restore(resident.lane, draft).await {
                Some(Ok(())) if wanted() => {
                    self.tell_restored(resident, begun.elapsed());
                    Ok(())
                }
                // Memory became short again just now, and who shed drafts did not see this one.
                Some(Ok(())) => {
                    self.shed(resident).await;
                    Err(WHY.to_owned())
                }
                Some(Err(error)) => failed(error.to_string()),
                // Unloaded or shed again: whoever did that has said so.
                None => Err("the pair was unloaded, or its draft was shed, meanwhile".to_owned()),
            },
            Ok(None) => failed("it has no file of its own".to_owned()),
            Err(failure) => failed(failure.to_string()),
        }
    }

    fn tell_restored(&self, resident: &Resident, took: Duration) {
        resident.mended(true);
        resident.set_draft(DraftPlace::Resident);
        tracing::info!(
            pair = %resident.name,
            ms = took.as_secs_f64() * 1e3,
            "the draft is back"
        );
        let event = v1::DraftRestored {
            took: Some(duration(took)),
        };
        self.events.tell(&resident.name, Event::Restored(event));
    }
}
