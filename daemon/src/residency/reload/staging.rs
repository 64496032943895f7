//! What a reload loads before it takes effect, and the way back where that fails.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::MutexGuard;

use super::ReloadError;
use crate::config::Config;
use crate::events;
use crate::loading::{DraftTerms, LoadFailure};
use crate::residency::{
    Admission, Changes, Failure, LaneId, Pair, PairState, Recipe, Residency, Resident, Size, fit,
    new_pair, settings,
};

/// How often to look whether earlier loads are gone that others are waiting for anyway.
const LOOK: Duration = Duration::from_millis(20);

/// Loads that wait to take over. While it exists, nothing else comes into memory.
pub(super) struct Staging<'a> {
    residency: &'a Arc<Residency>,
    memory: Option<MutexGuard<'a, ()>>,
    /// The budget to go back to, in bytes.
    budget_before: u64,
    added: BTreeMap<String, Arc<Pair>>,
    ready: Vec<(Arc<Pair>, Arc<Resident>)>,
    /// Failures of unchanged pairs that are being loaded again.
    failures: Vec<(Arc<Pair>, Failure)>,
    /// Loads that were taken out before the new ones came in.
    gone: Vec<(Arc<Pair>, Arc<Resident>)>,
    /// Pairs that are the same as before and failed again, and why.
    gave_up: Vec<(String, String)>,
}

/// A pair that is to be loaded.
struct Want {
    pair: Arc<Pair>,
    recipe: Arc<Recipe>,
    size: Size,
    old: Option<Arc<Resident>>,
    /// Whether it had failed before and may do so again.
    may_fail: bool,
}

impl Want {
    fn failed(&self, source: LoadFailure) -> ReloadError {
        ReloadError::Pair {
            pair: self.pair.name.clone(),
            source,
        }
    }
}

impl<'a> Staging<'a> {
    /// Loads what `new` needs; `sizes` says how much that takes. The caller holds `memory`.
    pub(super) async fn load(
        residency: &'a Arc<Residency>,
        memory: MutexGuard<'a, ()>,
        budget_before: u64,
        (new, changes): (&Config, &Changes),
        sizes: &BTreeMap<String, Size>,
    ) -> Result<Self, ReloadError> {
        let mut staging = Self {
            residency,
            memory: Some(memory),
            budget_before,
            added: BTreeMap::new(),
            ready: Vec::new(),
            failures: Vec::new(),
            gone: Vec::new(),
            gave_up: Vec::new(),
        };
        let wants = staging.wants(new, changes, sizes);
        let result = match staging.check_result(changes, &wants) {
            Ok(()) => staging.load_all(changes, wants).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => Ok(staging),
            Err(error) => {
                staging.undo().await;
                Err(error)
            }
        }
    }

    /// Returns a pair that is new and has been loaded.
    pub(super) fn pair(&self, name: &str) -> Option<Arc<Pair>> {
        self.added.get(name).cloned()
    }

    /// Whether a pair failed again that had failed before.
    pub(super) fn gave_up(&self, name: &str) -> bool {
        self.gave_up.iter().any(|(pair, _)| pair == name)
    }

    /// Returns the pairs that failed again, and why.
    pub(super) fn given_up(&self) -> &[(String, String)] {
        &self.gave_up
    }

    /// Takes the loads and the pairs that they are for.
    pub(super) fn take_ready(&mut self) -> Vec<(Arc<Pair>, Arc<Resident>)> {
        std::mem::take(&mut self.ready)
    }

    /// Says which pairs are to be loaded: those that are loaded now or have failed, and new ones that are preloaded.
    fn wants(
        &mut self,
        new: &Config,
        changes: &Changes,
        sizes: &BTreeMap<String, Size>,
    ) -> Vec<Want> {
        let mut wants = Vec::new();
        for name in changes.to_check() {
            let settings = settings(new, name);
            let known = self.residency.pair(name).ok();
            let (pair, old) = match known {
                None if settings.residency.preload => {
                    let pair = Arc::new(new_pair(new, name));
                    pair.begin_loading(|_| true);
                    self.added.insert(name.clone(), Arc::clone(&pair));
                    (pair, None)
                }
                None => continue,
                Some(pair) => match pair.state() {
                    PairState::Cold(Some(failure)) => {
                        pair.begin_loading(|_| true);
                        self.failures.push((Arc::clone(&pair), failure));
                        (pair, None)
                    }
                    PairState::Warm(old) | PairState::Draining(old) => (pair, Some(old)),
                    // Not wanted now; or waiting for its turn, which then finds the new recipe.
                    _ => continue,
                },
            };
            wants.push(Want {
                pair,
                recipe: settings.recipe,
                size: sizes.get(name).copied().unwrap_or_default(),
                old,
                may_fail: changes.retried.contains(name),
            });
        }
        wants
    }

    /// Checks that everything fits once all is loaded that is to be, and all is gone that is to go.
    fn check_result(&self, changes: &Changes, wants: &[Want]) -> Result<(), ReloadError> {
        if let Some(want) = wants.first() {
            // Before anything is taken out that could not come back.
            let may = self.residency.may_bring_in(DraftTerms::Insist);
            may.map_err(|source| want.failed(source))?;
        }
        let stays = |pair: &Arc<Pair>| {
            !changes.removed.contains(&pair.name)
                && !wants.iter().any(|want| Arc::ptr_eq(&want.pair, pair))
        };
        let pairs = self.residency.pairs();
        let staying = pairs.iter().filter(|pair| stays(pair));
        let staying = staying.filter_map(|pair| Some(pair.state().resident()?.size));
        let coming = wants.iter().map(|want| want.size);
        Ok(fit::check(
            self.residency.budget(),
            staying.chain(coming),
            0,
        )?)
    }

    async fn load_all(&mut self, changes: &Changes, wants: Vec<Want>) -> Result<(), ReloadError> {
        let mut later = Vec::new();
        for want in wants {
            let roomy = self.residency.admission() == Admission::Open;
            if roomy && self.residency.check_fit(&[], Some(want.size)).is_ok() {
                self.bring_in(want).await?;
            } else {
                later.push(want);
            }
        }
        if later.is_empty() {
            return Ok(());
        }
        self.make_room(changes, &later).await;
        for want in later {
            self.bring_in(want).await?;
        }
        Ok(())
    }

    async fn bring_in(&mut self, want: Want) -> Result<(), ReloadError> {
        let draft = self.residency.may_bring_in(DraftTerms::Insist);
        let draft = draft.map_err(|source| want.failed(source))?;
        let pair = want.pair;
        match self.residency.bring_in(&pair, want.recipe, draft).await {
            Ok(resident) => self.ready.push((pair, resident)),
            Err(failure) if want.may_fail => {
                self.gave_up.push((pair.name.clone(), failure.to_string()));
                let gone = self.gone.iter();
                let at = gone
                    .map(|(other, _)| other)
                    .position(|other| Arc::ptr_eq(other, &pair));
                if let Some(at) = at {
                    let (pair, old) = self.gone.remove(at);
                    self.residency.bring_back(&pair, &old).await;
                } else if want.old.is_none() {
                    self.residency.fail(&pair, &failure);
                    self.failures
                        .retain(|(other, _)| !Arc::ptr_eq(other, &pair));
                }
            }
            Err(source) => {
                return Err(ReloadError::Pair {
                    pair: pair.name.clone(),
                    source,
                });
            }
        }
        Ok(())
    }

    /// Drains the old loads of `later` and of pairs that are removed, and takes them out.
    async fn make_room(&mut self, changes: &Changes, later: &[Want]) {
        let residency = self.residency;
        let removed = changes.removed.iter();
        let removed = removed.filter_map(|name| residency.pair(name).ok());
        let replaced = later.iter().filter(|want| want.old.is_some());
        let leaving = removed.chain(replaced.map(|want| Arc::clone(&want.pair)));
        let mut drained = Vec::new();
        for pair in leaving {
            if let Some(old) = pair.drain(|_| true) {
                residency.tell_draining(&old);
                drained.push((pair, old));
            }
        }
        // Requests may take minutes to end; others may load and unload meanwhile.
        self.memory = None;
        for (_, old) in &drained {
            old.unused().await;
        }
        self.until_gone(self.retiring(&drained)).await;
        self.memory = Some(residency.memory.lock().await);
        for (pair, old) in drained {
            pair.enter(PairState::Unloading);
            residency.take_out(&old, "replaced").await;
            pair.enter(PairState::Loading);
            self.gone.push((pair, old));
        }
    }

    /// Returns earlier loads that requests still end on.
    fn retiring(&self, drained: &[(Arc<Pair>, Arc<Resident>)]) -> Vec<LaneId> {
        let pairs = self.residency.pairs();
        let serving: Vec<LaneId> = pairs
            .iter()
            .filter_map(|pair| Some(pair.state().resident()?.lane))
            .chain(self.ready.iter().map(|(_, resident)| resident.lane))
            .chain(drained.iter().map(|(_, resident)| resident.lane))
            .collect();
        let living = self.residency.residents();
        let lanes = living.iter().map(|resident| resident.lane);
        lanes.filter(|lane| !serving.contains(lane)).collect()
    }

    async fn until_gone(&self, lanes: Vec<LaneId>) {
        let there = || {
            let living = self.residency.residents();
            living.iter().any(|resident| lanes.contains(&resident.lane))
        };
        while there() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Brings everything back to what it was.
    async fn undo(mut self) {
        let residency = self.residency;
        residency.set_budget(self.budget_before);
        for (_, resident) in self.ready.drain(..) {
            residency.take_out(&resident, "not used").await;
        }
        for (pair, failure) in self.failures.drain(..) {
            pair.set_failed(&failure.error, failure.retry);
        }
        for (pair, old) in self.gone.drain(..) {
            residency.bring_back(&pair, &old).await;
        }
    }
}

impl Residency {
    /// Loads again what was taken out for something that then failed.
    async fn bring_back(&self, pair: &Arc<Pair>, old: &Arc<Resident>) {
        let recipe = Arc::clone(&old.recipe);
        // However short memory is: it was there before.
        let draft = self.may_bring_in(DraftTerms::Try);
        let draft = draft.unwrap_or(DraftTerms::Later);
        match self.bring_in(pair, recipe, draft).await {
            Ok(resident) => {
                self.events.tell(&pair.name, events::ready(resident.took));
                pair.set_warm(resident);
            }
            Err(failure) => self.fail(pair, &failure),
        }
    }
}
