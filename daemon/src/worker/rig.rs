//! An engine thread with real engines, and hands on both of its sides.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tandem_engine::engine::{CacheClaims, Engine, MemoryUse, RequestError, ShedDraft, StepError};
use tandem_engine::pair::{LoadError, LoadedDraft};
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_engine::{Output, SequenceId, StopConditions};
use tonic::Status;

use super::*;
use crate::config::{Config, PairConfig, ResidencyConfig};
use crate::events::Events;
use crate::platform::FakePlatform;
use crate::replies::{self, Finished, Replies, Reply};
use crate::residency::{
    Activity, DraftPlace, LaneId, Pair, Parts, Recipe, Resident, Settings, Size,
};

/// Room of each pair.
const CAPACITY: usize = 8;

/// Does something before each step of a real engine.
struct Hooked<F> {
    engine: Engine,
    before_step: F,
}

impl<F: FnMut() + Send> Decode for Hooked<F> {
    fn submit(&mut self, request: Request) -> Result<SequenceId, RequestError> {
        self.engine.submit(request)
    }

    fn cancel(&mut self, id: SequenceId) {
        self.engine.cancel(id);
    }

    fn has_work(&self) -> bool {
        self.engine.has_work()
    }

    fn step(&mut self, clock: &dyn Fn() -> Instant) -> Result<Vec<Output>, StepError> {
        (self.before_step)();
        self.engine.step(clock)
    }

    fn steps(&self) -> u64 {
        self.engine.steps()
    }

    fn memory(&self) -> MemoryUse {
        self.engine.memory()
    }

    fn counts(&self) -> (usize, usize) {
        self.engine.counts()
    }

    fn speculation_off_reason(&self) -> Option<&str> {
        self.engine.speculation_off_reason()
    }

    fn speculation(&self) -> &SpeculationStats {
        self.engine.speculation()
    }

    fn step_costs(&self) -> Vec<StepCost> {
        self.engine.step_costs()
    }

    fn shed_draft(&mut self, reason: String) -> ShedDraft {
        self.engine.shed_draft(reason)
    }

    fn restore_draft(&mut self, draft: LoadedDraft) -> Result<Option<LoadedDraft>, LoadError> {
        self.engine.restore_draft(draft)
    }

    fn hold(&mut self, hold: bool) {
        self.engine.hold(hold);
    }

    fn trim(&mut self) {
        self.engine.trim();
    }

    fn set_cache_budget(&mut self, budget: u64, room: u64) {
        self.engine.set_cache_budget(budget, room);
    }

    fn cache_claims(&self) -> CacheClaims {
        self.engine.cache_claims()
    }
}

/// One engine thread and its pairs.
pub(super) struct Rig {
    pub(super) worker: Worker,
    pub(super) pairs: Vec<Arc<Pair>>,
    pub(super) totals: Arc<Totals>,
    pub(super) platform: FakePlatform,
    pub(super) residents: Vec<Arc<Resident>>,
    activity: Activity,
}

impl Rig {
    pub(super) async fn new(
        engines: Vec<impl FnMut() + Send + 'static>,
        max_sequences: usize,
    ) -> Self {
        let totals = Arc::new(Totals::default());
        let platform = FakePlatform::default();
        let events = Events::default();
        let (worker, _) = start(Arc::clone(&totals), events, Arc::new(platform.clone())).unwrap();
        worker.set_budget(1 << 30);
        let (mut pairs, mut residents) = (Vec::new(), Vec::new());
        for (index, before_step) in engines.into_iter().enumerate() {
            let loaded = tiny::load();
            let parts = Parts {
                tokenizer: Arc::clone(loaded.tokenizer()),
                template: crate::loading::template(&loaded),
                report: loaded.report().clone(),
                size: Size::default(),
                draft: DraftPlace::None,
                took: Duration::ZERO,
            };
            let name = format!("pair{index}");
            let config = Config::built_in();
            let settings = Settings {
                recipe: Arc::new(Recipe::new(&config, &PairConfig::built_in())),
                residency: ResidencyConfig::default(),
            };
            let pair = Arc::new(Pair::new(name.clone(), settings.clone(), CAPACITY));
            let resident = Resident::new(LaneId(index as u64), name, settings.recipe, parts);
            let resident = Arc::new(resident);
            let engine = Box::new(Hooked {
                engine: tiny::engine(loaded, max_sequences),
                before_step,
            });
            worker
                .install(Arc::clone(&resident), Arc::clone(&pair), engine)
                .await;
            pair.set_warm(Arc::clone(&resident));
            residents.push(resident);
            pairs.push(pair);
        }
        Self {
            worker,
            pairs,
            totals,
            platform,
            residents,
            activity: Activity::default(),
        }
    }

    /// One pair whose steps each wait for an item of the returned channel.
    pub(super) async fn paced(max_sequences: usize) -> (Self, mpsc::Sender<()>) {
        let (go, wait) = mpsc::channel();
        let before_step = move || {
            let _test_ended = wait.recv();
        };
        (Self::new(vec![before_step], max_sequences).await, go)
    }

    pub(super) fn submit(&self, pair: usize, prompt: Vec<u32>, max_tokens: usize) -> Replies {
        self.submit_with(pair, prompt, max_tokens, false)
    }

    pub(super) fn submit_with(
        &self,
        index: usize,
        prompt: Vec<u32>,
        max_tokens: usize,
        require_speculation: bool,
    ) -> Replies {
        let pair = &self.pairs[index];
        let name = pair.name.clone();
        let (sink, replies) = replies::channel();
        let job = Job {
            request: Request {
                stop: StopConditions {
                    max_tokens: Some(max_tokens),
                    ignore_eos: true,
                    ..StopConditions::default()
                },
                ..Request::new(prompt, max_tokens)
            },
            require_speculation,
            record: Record::begin("r".into(), name, Instant::now(), Arc::clone(&self.totals)),
            sink,
            reservation: pair.reserve().unwrap(),
            lease: self.residents[index].lease(pair, None, self.activity.begin()),
        };
        self.worker.submit(job);
        replies
    }

    /// Waits until the engine thread has nothing left to do.
    pub(super) fn settled(&self) {
        eventually(|| self.pairs.iter().all(|pair| pair.reserved() == 0));
    }
}

pub(super) fn eventually(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads a stream to its end: all tokens, and how it ended.
pub(super) async fn read(mut replies: Replies) -> (Vec<u32>, Result<Finished, Status>) {
    let mut tokens = Vec::new();
    loop {
        match replies.next().await.expect("an end comes first") {
            Reply::Chunk(chunk) => tokens.extend(chunk.token_ids),
            Reply::Finished(finished) => return (tokens, Ok(*finished)),
            Reply::Failed(status) => return (tokens, Err(status)),
        }
    }
}
