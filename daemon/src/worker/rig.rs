//! An engine thread with real engines, and hands on both of its sides.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tandem_engine::engine::{Engine, MemoryUse, RequestError, StepError};
use tandem_engine::policy::{SpeculationStats, StepCost};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Output, SequenceId, StopConditions};
use tonic::Status;

use super::*;
use crate::config::PairConfig;
use crate::platform::FakePlatform;
use crate::replies::{self, Finished, Replies, Reply};

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
}

/// One engine thread and its pairs.
pub(super) struct Rig {
    pub(super) worker: Worker,
    pub(super) pairs: Vec<Arc<Pair>>,
    pub(super) totals: Arc<Totals>,
    pub(super) platform: FakePlatform,
}

impl Rig {
    pub(super) fn new(engines: Vec<impl FnMut() + Send + 'static>, max_sequences: usize) -> Self {
        let totals = Arc::new(Totals::default());
        let platform = FakePlatform::default();
        let (worker, _) = Worker::start(
            engines.len(),
            engines.len() * CAPACITY,
            Arc::clone(&totals),
            Arc::new(platform.clone()),
        )
        .unwrap();
        let mut pairs = Vec::new();
        for (index, before_step) in engines.into_iter().enumerate() {
            let loaded = tiny::load();
            let warm = Arc::new(Warm {
                tokenizer: Arc::clone(loaded.tokenizer()),
                template: loaded.template().cloned(),
                report: loaded.report().clone(),
            });
            let pair = Arc::new(Pair::new(
                index,
                format!("pair{index}"),
                PairConfig::built_in(),
                CAPACITY,
            ));
            let engine = tiny::engine(loaded, max_sequences);
            worker.install(
                Arc::clone(&pair),
                warm,
                Box::new(Hooked {
                    engine,
                    before_step,
                }),
            );
            pairs.push(pair);
        }
        Self {
            worker,
            pairs,
            totals,
            platform,
        }
    }

    /// One pair whose steps each wait for an item of the returned channel.
    pub(super) fn paced(max_sequences: usize) -> (Self, mpsc::Sender<()>) {
        let (go, wait) = mpsc::channel();
        let before_step = move || {
            let _test_ended = wait.recv();
        };
        (Self::new(vec![before_step], max_sequences), go)
    }

    pub(super) fn submit(&self, pair: usize, prompt: Vec<u32>, max_tokens: usize) -> Replies {
        self.submit_with(pair, prompt, max_tokens, false)
    }

    pub(super) fn submit_with(
        &self,
        pair: usize,
        prompt: Vec<u32>,
        max_tokens: usize,
        require_speculation: bool,
    ) -> Replies {
        let name = self.pairs[pair].name.clone();
        let (sink, replies) = replies::channel();
        let job = Job {
            request: Request {
                prompt,
                sampling: SamplingParams::greedy(),
                stop: StopConditions {
                    max_tokens: Some(max_tokens),
                    ignore_eos: true,
                    ..StopConditions::default()
                },
                speculation: true,
                client: None,
                drafters: None,
                draft_length: None,
                logprobs: None,
                draft_width: None,
                deadline: None,
                entropy: 0,
            },
            require_speculation,
            record: Record::begin("r".into(), name, Instant::now(), Arc::clone(&self.totals)),
            sink,
            reservation: self.pairs[pair].reserve().unwrap(),
        };
        self.worker.submit(pair, job);
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
