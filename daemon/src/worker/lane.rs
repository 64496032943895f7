//! One pair on the engine thread: its engine, the requests in it, and what happens to them when it fails.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_engine::engine::{RequestError, StepError};
use tandem_engine::policy::StepCost;
use tandem_engine::{FinishReason, Output, RequestStats, SequenceId};
use tonic::Status;

use super::{Decode, Job};
use crate::errors;
use crate::pair::{Pair, Readings, Reservation};
use crate::record::{Outcome, Record, Totals};
use crate::replies::{Finished, Sink};

/// While requests run, what steps cost is told at most this often.
const COSTS_AGE: Duration = Duration::from_secs(1);

/// A pair's engine and its requests.
pub(super) struct Lane {
    pair: Arc<Pair>,
    engine: Box<dyn Decode>,
    live: HashMap<SequenceId, Live>,
    /// What steps cost when it was last asked.
    step_costs: Arc<[StepCost]>,
    asked: Instant,
}

/// A request inside the engine.
struct Live {
    record: Record,
    sink: Sink,
    reservation: Reservation,
}

/// What ended an engine.
enum Loss {
    Step(StepError),
    Panic,
}

/// Why a request does not get into the engine.
enum Refusal {
    /// It requires speculation, and nothing drafts; why.
    Plain(String),
    Invalid(RequestError),
}

impl Live {
    fn fail(self, status: Status) {
        let Self {
            record,
            sink,
            reservation,
        } = self;
        record.end(Outcome::Failed(status.code()), None);
        // Before the client hears, so that it finds room when it tries again at once.
        drop(reservation);
        sink.fail(status);
    }

    fn finish(self, reason: FinishReason, stats: RequestStats, now: Instant) {
        let Self {
            record,
            sink,
            reservation,
        } = self;
        let times = record.times(now);
        let logged = match reason {
            FinishReason::StopToken(_) => "stop_token",
            FinishReason::StopString(_) => "stop_string",
            FinishReason::Length => "length",
            FinishReason::TimeLimit => "time_limit",
        };
        record.end(Outcome::Finished(logged), Some(&stats));
        drop(reservation);
        sink.finish(Finished {
            reason,
            stats,
            times,
        });
    }
}

/// Answers a request whose pair was lost on its way here.
pub(super) fn refuse_lost(job: Job) {
    job.record.end(Outcome::Failed(tonic::Code::Internal), None);
    job.sink.fail(errors::internal(
        "the pair's engine stopped before the request reached it",
    ));
}

impl Lane {
    pub(super) fn new(pair: Arc<Pair>, engine: Box<dyn Decode>) -> Self {
        let mut lane = Self {
            pair,
            engine,
            live: HashMap::new(),
            step_costs: Arc::default(),
            asked: Instant::now(),
        };
        lane.publish();
        lane
    }

    pub(super) fn has_requests(&self) -> bool {
        !self.live.is_empty()
    }

    /// Puts a request into the engine, or tells its sink why not. Returns whether the engine is still good.
    pub(super) fn submit(&mut self, job: Job) -> bool {
        let Job {
            request,
            require_speculation,
            record,
            sink,
            reservation,
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
            reservation,
        };
        match submitted {
            Ok(Ok(id)) => {
                live.record.submitted(prompt_tokens);
                self.live.insert(id, live);
                self.publish();
                true
            }
            Ok(Err(refusal)) => {
                live.fail(match refusal {
                    Refusal::Plain(why) => errors::no_speculation(&self.pair.name, &why),
                    Refusal::Invalid(error) => errors::request_refused(&self.pair.name, &error),
                });
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
    pub(super) fn turn(&mut self, totals: &Totals) -> bool {
        let loss = match catch_unwind(AssertUnwindSafe(|| self.cancel_and_step(totals))) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => Loss::Step(error),
            Err(_) => Loss::Panic,
        };
        self.lose(&loss);
        false
    }

    fn cancel_and_step(&mut self, totals: &Totals) -> Result<(), StepError> {
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
        Totals::add(&totals.steps, self.engine.steps() - before);
        // Before the clients hear, so that the status they may ask for next is up to date.
        self.publish();
        let now = Instant::now();
        for output in outputs {
            self.deliver(output, began, now);
        }
        Ok(())
    }

    /// Passes on what a step said that took from `began` to `now`; it admits before it computes.
    fn deliver(&mut self, output: Output, began: Instant, now: Instant) {
        match output {
            Output::Admitted { id } => {
                if let Some(live) = self.live.get_mut(&id) {
                    live.record.admitted(began);
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
            Output::Finished { id, reason, stats } => {
                if let Some(live) = self.live.remove(&id) {
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
        let what = match loss {
            Loss::Step(error) => error.to_string(),
            Loss::Panic => "its engine stopped on an internal error".to_owned(),
        };
        tracing::error!(pair = %pair.name, requests = self.live.len(), error = what, "the pair is lost");
        pair.set_failed(&format!("{what}; restart the daemon"), false);
        // What it did stays part of the totals.
        pair.set_readings(Readings {
            speculation: pair.readings().speculation,
            ..Readings::default()
        });
        self.fail_all(&|| match loss {
            Loss::Step(_) => errors::step_failed(&pair.name, &what),
            Loss::Panic => errors::engine_panicked(&pair.name),
        });
    }

    fn publish(&mut self) {
        // A list, so not with every step of a stream.
        if !self.engine.has_work() || self.asked.elapsed() > COSTS_AGE {
            self.step_costs = self.engine.step_costs().into();
            self.asked = Instant::now();
        }
        let (running, waiting) = self.engine.counts();
        self.pair.set_readings(Readings {
            running,
            waiting,
            memory: self.engine.memory(),
            speculation_off: self.engine.speculation_off_reason().map(str::to_owned),
            speculation: self.engine.speculation().clone(),
            step_costs: Arc::clone(&self.step_costs),
        });
    }
}
