//! Bringing pairs into memory.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{
    Admission, LaneId, Pair, PairState, Parts, Recipe, Residency, Resident, Size, TooLarge, fit,
};
use crate::events;
use crate::loading::{DraftTerms, LoadFailure, Terms, reporter};
use crate::worker::Decode;

impl Residency {
    /// Loads the pairs that are to be loaded at once, the default one first.
    pub(crate) fn preload(self: &Arc<Self>) {
        let config = self.config();
        let mut pairs = self.pairs();
        pairs.retain(|pair| pair.settings().residency.preload);
        pairs.retain(|pair| pair.begin_loading(|_| true));
        pairs.sort_by_key(|pair| pair.name != config.default_pair);
        let this = Arc::clone(self);
        tokio::spawn(async move {
            for pair in pairs {
                this.load_waited_for(&pair).await;
            }
        });
    }

    /// Has a pair loaded that is cold for no reason.
    pub(super) fn want(self: &Arc<Self>, pair: &Arc<Pair>) {
        self.load_where(pair, |failed| !failed);
    }

    /// Has a pair looked at again whose failure may have passed.
    pub(crate) fn retry(self: &Arc<Self>, pair: &Arc<Pair>) {
        if matches!(pair.state(), PairState::Cold(Some(failure)) if failure.retry) {
            self.load_where(pair, |_| true);
        }
    }

    fn load_where(self: &Arc<Self>, pair: &Arc<Pair>, may: impl FnOnce(bool) -> bool) {
        if pair.begin_loading(|failure| may(failure.is_some())) {
            let (this, pair) = (Arc::clone(self), Arc::clone(pair));
            // On a task of its own: who asked for it may go away.
            tokio::spawn(async move { this.load_waited_for(&pair).await });
        }
    }

    /// Loads a pair that was put to loading, and says so.
    async fn load_waited_for(&self, pair: &Arc<Pair>) {
        let _one_at_a_time = self.memory.lock().await;
        // A reload may have removed it, or loaded it, while this waited.
        if !matches!(pair.state(), PairState::Loading) {
            return;
        }
        let recipe = pair.settings().recipe;
        let brought = match self.may_bring_in(DraftTerms::Try) {
            Ok(draft) => self.bring_in(pair, recipe, draft).await,
            Err(failure) => Err(failure),
        };
        match brought {
            Ok(resident) => {
                let took = resident.took;
                pair.set_warm(resident);
                self.changed.notify_one();
                self.events.tell(&pair.name, events::ready(took));
            }
            Err(failure) => self.fail(pair, &failure),
        }
    }

    pub(super) fn fail(&self, pair: &Pair, failure: &LoadFailure) {
        let error = failure.to_string();
        tracing::error!(pair = %pair.name, error, "cannot load the pair");
        pair.set_failed(&error, failure.may_pass());
        self.events.tell(&pair.name, events::failed(&error));
    }

    /// Says whether pairs may be loaded just now, and what to do about their drafts where `draft` is wanted.
    pub(super) fn may_bring_in(&self, draft: DraftTerms) -> Result<DraftTerms, LoadFailure> {
        match self.admission() {
            Admission::Closed => Err(LoadFailure::Pressure),
            Admission::Plain => Ok(DraftTerms::Later),
            Admission::Open => Ok(draft),
        }
    }

    /// Loads a pair beside everything that is in memory. The caller holds the lock on memory, and puts the result to use.
    pub(super) async fn bring_in(
        &self,
        pair: &Arc<Pair>,
        recipe: Arc<Recipe>,
        draft: DraftTerms,
    ) -> Result<Arc<Resident>, LoadFailure> {
        let others: u64 = self.sizes(&[]).iter().map(|size| size.weights).sum();
        let terms = Terms {
            budget: self.budget().saturating_sub(others),
            draft,
        };
        let loader = Arc::clone(&self.loader);
        let mut progress = reporter(Arc::clone(pair), self.events.clone());
        let (name, made_of) = (pair.name.clone(), Arc::clone(&recipe));
        let load = move || loader.load(&name, &made_of, terms, &mut progress);
        let loaded = self.aside(load).await;
        let loaded = loaded.unwrap_or(Err(LoadFailure::Panic));
        pair.set_load_progress(None);
        let loaded = loaded?;
        self.check_fit(&[], Some(loaded.parts.size))
            .map_err(LoadFailure::Beside)?;
        let engine = Box::new(loaded.engine);
        let resident = self.install(pair, recipe, loaded.parts, engine).await;
        self.share_budget();
        Ok(resident)
    }

    async fn install(
        &self,
        pair: &Arc<Pair>,
        recipe: Arc<Recipe>,
        parts: Parts,
        engine: Box<dyn Decode>,
    ) -> Arc<Resident> {
        let lane = LaneId(self.lanes.fetch_add(1, Ordering::Relaxed));
        let resident = Arc::new(Resident::new(lane, pair.name.clone(), recipe, parts));
        crate::lock(&self.living).insert(lane, Arc::clone(&resident));
        let pair = Arc::clone(pair);
        self.worker
            .install(Arc::clone(&resident), pair, engine)
            .await;
        resident
    }

    /// Sizes of everything that is in memory, some of it left out.
    pub(super) fn sizes(&self, without: &[LaneId]) -> Vec<Size> {
        let residents = self.residents();
        let others = residents
            .iter()
            .filter(|resident| !without.contains(&resident.lane));
        others.map(|resident| resident.size).collect()
    }

    /// Checks that what is in memory fits the budget with `new`, and once `without` is gone.
    pub(super) fn check_fit(
        &self,
        without: &[LaneId],
        new: impl IntoIterator<Item = Size>,
    ) -> Result<(), TooLarge> {
        let residents = self.residents();
        let others = residents
            .iter()
            .filter(|resident| !without.contains(&resident.lane));
        let claimed = others.map(|resident| resident.readings().cache_claims);
        let claimed = claimed.sum();
        let sizes = self.sizes(without).into_iter().chain(new);
        fit::check(self.budget(), sizes, claimed)
    }
}
