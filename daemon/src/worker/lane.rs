//! One load of a pair on the engine thread: its engine, the requests in it, and what happens to them when it fails.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_engine::engine::ShedDraft;
use tandem_engine::pair::LoadedDraft;
use tandem_engine::policy::StepCost;
use tandem_engine::{Output, SequenceId};
use tokio::sync::{Notify, oneshot};
use tonic::Status;

use super::live::{Hold, Live};
use super::loss::{Loss, Refusal};
use super::rooms::Claim;
use super::waiting::WaitingDraft;
use super::weights::Weights;
use super::{Decode, Job, Progress, Restored, What};
use crate::errors;
use crate::events::{self, Events};
use crate::record::{Outcome, Totals};
use crate::residency::{Pair, Readings, Resident};

/// While requests run, what steps cost is told at most this often.
const COSTS_AGE: Duration = Duration::from_secs(1);

/// Whom a lane tells what happens to it.
pub(super) struct Tell {
    pub(super) events: Events,
    pub(super) draft_losses: Arc<Notify>,
}

/// An engine and its requests.
pub(super) struct Lane {
    pair: Arc<Pair>,
    resident: Arc<Resident>,
    engine: Box<dyn Decode>,
    live: HashMap<SequenceId, Live>,
    draft: WaitingDraft,
    /// What the engine's numbers rest on.
    weights: Weights,
    tell: Tell,
    /// What steps cost when it was last asked.
    step_costs: Arc<[StepCost]>,
    asked: Instant,
}

impl Lane {
    pub(super) fn new(
        pair: Arc<Pair>,
        resident: Arc<Resident>,
        engine: Box<dyn Decode>,
        tell: Tell,
    ) -> Self {
        let mut lane = Self {
            weights: Weights::of(&resident.report),
            pair,
            resident,
            engine,
            live: HashMap::new(),
            draft: WaitingDraft::default(),
            tell,
            step_costs: Arc::default(),
            asked: Instant::now(),
        };
        lane.publish();
        lane
    }

    /// Ends the requests that are left with an error, and gives the engine back.
    pub(super) fn into_engine(mut self) -> Box<dyn Decode> {
        self.fail_all(&|| errors::internal("the pair was unloaded under the request"));
        self.engine
    }

    pub(super) fn name(&self) -> &str {
        &self.pair.name
    }

    /// Bytes of weights that it is counted with.
    pub(super) fn weights(&self) -> u64 {
        self.resident.size.weights
    }

    /// What its requests hold and ask for.
    pub(super) fn claim(&self) -> Claim {
        if self.live.is_empty() {
            return Claim::default();
        }
        Claim {
            bytes: self.engine.cache_claims(),
            arrival: self.live.values().filter_map(|live| live.waits).min(),
        }
    }

    pub(super) fn set_room(&mut self, pool: u64, room: u64) {
        self.engine.set_cache_budget(pool, room);
    }

    pub(super) fn hold(&mut self, hold: bool) {
        self.engine.hold(hold);
    }

    pub(super) fn trim(&mut self) {
        self.engine.trim();
        self.publish();
    }

    /// Takes the draft out, and one that waits to be put back as well.
    pub(super) fn shed(&mut self, reason: String) -> ShedDraft {
        self.draft.drop_it();
        let shed = self.engine.shed_draft(reason);
        self.publish();
        shed
    }

    /// Puts a draft back now or as soon as the engine takes it.
    pub(super) fn restore(&mut self, draft: LoadedDraft, done: oneshot::Sender<Restored>) {
        self.weights.set_draft(draft.summary());
        self.draft.put(draft, done);
        self.offer_draft();
    }

    fn offer_draft(&mut self) {
        if !self.draft.is_empty() && self.draft.offer(&mut *self.engine) {
            self.publish();
        }
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.live.is_empty()
    }

    /// Puts a request into the engine, or tells its sink why not. Returns whether the engine is still good.
    pub(super) fn submit(&mut self, job: Job, arrival: u64) -> bool {
        let Job {
            request,
            require_speculation,
            record,
            sink,
            reservation,
            lease,
        } = job;
        if let Some(gone) = sink.gone() {
            record.end(Outcome::Gone(gone), None);
            return true;
        }
        let prompt_tokens = request.prompt.len();
        let engine = &mut self.engine;
        let submitted = catch_unwind(AssertUnwindSafe(|| {
            if require_speculation && let Some(why) = engine.speculation_off_reason() {
                return Err(Refusal::Plain(why.to_owned()));
            }
            engine.submit(request).map_err(Refusal::Invalid)
        }));
        let mut live = Live {
            record,
            sink,
            hold: Hold {
                _reservation: reservation,
                _lease: lease,
            },
            waits: Some(arrival),
        };
        match submitted {
            Ok(Ok(id)) => {
                live.record.submitted(prompt_tokens);
                self.live.insert(id, live);
                self.publish();
                true
            }
            Ok(Err(refusal)) => {
                live.fail(refusal.status(&self.pair.name));
                true
            }
            Err(_) => {
                live.fail(errors::engine_panicked(&self.pair.name));
                self.lose(&Loss::Panic);
                false
            }
        }
    }

    /// Drops the requests whose streams are gone, then runs one step. Returns whether the engine is still good.
    pub(super) fn turn(&mut self, totals: &Totals, progress: &Progress) -> bool {
        let (running, waiting) = self.engine.counts();
        let what = What::Step {
            number: self.engine.steps() + 1,
            running,
            waiting,
        };
        progress.begin(what, self.name());
        let loss = match catch_unwind(AssertUnwindSafe(|| self.cancel_and_step(totals))) {
            Ok(Ok(())) => return true,
            Ok(Err(loss)) => loss,
            Err(_) => Loss::Panic,
        };
        self.lose(&loss);
        false
    }

    fn cancel_and_step(&mut self, totals: &Totals) -> Result<(), Loss> {
        let engine = &mut self.engine;
        for (id, live) in self.live.extract_if(|_, live| live.sink.gone().is_some()) {
            engine.cancel(id);
            if let Some(gone) = live.sink.gone() {
                live.record.end(Outcome::Gone(gone), None);
            }
        }
        if !self.engine.has_work() {
            self.publish();
            // Nobody is left here while the engine keeps its promise to finish what it took in.
            self.fail_all(&|| errors::internal("the engine lost the request"));
            return Ok(());
        }
        let (began, before) = (Instant::now(), self.engine.steps());
        let outputs = self.engine.step(&Instant::now)?;
        // Before anything is made of what was computed.
        self.weights.check_target()?;
        if let Err(damage) = self.weights.check_draft() {
            // What the target says of a draft holds whatever the draft was.
            let reason = format!("the draft's prepared weights failed: {damage}");
            drop(self.engine.shed_draft(reason));
            self.weights.set_draft(None);
        }
        Totals::add(&totals.steps, self.engine.steps() - before);
        // Before the clients hear, so that the status they may ask for next is up to date.
        self.publish();
        let now = Instant::now();
        for output in outputs {
            self.deliver(output, began, now);
        }
        self.offer_draft();
        Ok(())
    }

    /// Passes on what a step said that took from `began` to `now`; it admits before it computes.
    fn deliver(&mut self, output: Output, began: Instant, now: Instant) {
        match output {
            Output::Admitted { id } => {
                if let Some(live) = self.live.get_mut(&id) {
                    live.record.admitted(began);
                    live.waits = None;
                }
            }
            Output::Tokens {
                id,
                token_ids,
                text,
                logprobs,
            } => {
                if let Some(live) = self.live.get_mut(&id) {
                    live.record.committed(token_ids.len(), now);
                    live.sink.push(&text, &token_ids, logprobs);
                }
            }
            Output::Failed { id, error } => {
                if let Some(live) = self.live.remove(&id) {
                    let pair = &self.pair.name;
                    tracing::warn!(pair = %pair, error = %error, "a request failed");
                    live.fail(errors::request_failed(pair, &error));
                }
            }
            Output::Finished { id, reason, stats } => {
                if let Some(live) = self.live.remove(&id) {
                    self.resident.prove();
                    live.finish(reason, stats, now);
                }
            }
        }
    }

    fn fail_all(&mut self, status: &dyn Fn() -> Status) {
        for (_, live) in self.live.drain() {
            live.fail(status());
        }
    }

    /// Gives the engine up: what it left behind cannot be trusted.
    fn lose(&mut self, loss: &Loss) {
        let pair = Arc::clone(&self.pair);
        let what = loss.to_string();
        tracing::error!(pair = %pair.name, requests = self.live.len(), error = what, "the pair is lost");
        // One that never brought a request to its end would fail again.
        let retry = self.resident.is_proved() || loss.may_pass();
        let then = if retry {
            "the next request loads it again"
        } else {
            "run `tandem reload` to load it again"
        };
        let error = format!("{what}; {then}");
        pair.lose(self.resident.lane, &error, retry);
        self.tell.events.tell(&pair.name, events::failed(&error));
        self.resident.set_lost();
        // What it did stays part of the totals.
        self.resident.set_readings(Readings {
            speculation: self.resident.readings().speculation,
            ..Readings::default()
        });
        self.fail_all(&|| loss.status(&pair.name));
    }

    fn publish(&mut self) {
        // A list, so not with every step of a stream.
        if !self.engine.has_work() || self.asked.elapsed() > COSTS_AGE {
            self.step_costs = self.engine.step_costs().into();
            self.asked = Instant::now();
        }
        if let Some(why) = self.engine.speculation_off_reason()
            && self.resident.lose_draft()
        {
            tracing::error!(pair = %self.pair.name, error = why, "the draft is lost; streams go on plainly");
            self.tell.draft_losses.notify_one();
        }
        let (running, waiting) = self.engine.counts();
        self.resident.set_readings(Readings {
            running,
            waiting,
            memory: self.engine.memory(),
            cache_claims: self.engine.cache_claims().running,
            speculation_off: self.engine.speculation_off_reason().map(str::to_owned),
            speculation: self.engine.speculation().clone(),
            step_costs: Arc::clone(&self.step_costs),
        });
    }
}
