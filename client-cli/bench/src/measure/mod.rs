//! The measurement itself: what is run, in which order, and what is kept of it.
//!
//! Every method answers a prompt before any method gets the next one, in an order that changes from prompt to prompt, so that
//! a machine that becomes slower does so for all.

mod answer;
mod cost;
mod fleet;
mod long;
mod machine;
mod speed;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tandem_client::GenerateRequest;

use crate::BenchError;
use crate::energy::Meter;
use crate::method::{Drafts, Method};
use crate::prompts::first_of_each;
use crate::quiet::Watch;
use crate::report::{Absent, Report, SCHEMA, Settings, Texts};
use crate::setup::{Extent, Service, Setup, Topic};
use answer::Answer;
use fleet::Fleet;

/// What is going on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Something begins that has so many parts.
    Begin {
        /// What.
        what: &'static str,
        /// Parts, as far as is known.
        parts: usize,
    },
    /// A part is done.
    Part,
    /// Something that should be known at once.
    Warning(String),
}

/// What all measurements share.
struct Bench<'a> {
    setup: &'a Setup,
    methods: Vec<Method>,
    fleet: Fleet<'a>,
    meter: Meter,
    progress: &'a mut dyn FnMut(Progress),
    report: Report,
}

/// Measures, for as long as that takes. Dropping the future ends it, and the daemons that it started.
///
/// # Errors
/// Where a daemon cannot be started or a call fails; nothing is kept then.
pub async fn measure(
    setup: &Setup,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, BenchError> {
    let began = Instant::now();
    progress(Progress::Begin {
        what: "looking at the machine",
        parts: 1,
    });
    let mut fleet = Fleet::new(setup);
    fleet.attach().await?;
    let watch = Watch::begin(&fleet.pids());
    for warning in watch.warnings() {
        progress(Progress::Warning(warning));
    }
    let meter = Meter::open();
    let (methods, absent) = available(setup, &mut fleet).await?;
    if setup.prompts.is_empty() {
        return Err(BenchError::Nothing("there is no prompt to ask".to_owned()));
    }
    let (tandem, pair, memory_bytes) = machine::describe(&mut fleet, &methods).await?;
    let report = Report {
        schema: SCHEMA,
        tandem,
        taken_at: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs()),
        machine: machine::machine(memory_bytes),
        pair,
        settings: Settings::default(),
        absent,
        quiet: crate::quiet::Quiet::default(),
        energy: meter.source(),
        texts: Texts::default(),
        runs: Vec::new(),
        long: Vec::new(),
        memory: Vec::new(),
        steps: Vec::new(),
        chains: Vec::new(),
    };
    let mut bench = Bench {
        setup,
        methods,
        fleet,
        meter,
        progress,
        report,
    };
    if setup.topics.contains(&Topic::Long) {
        bench.long().await?;
    }
    let prompts = first_of_each(&setup.prompts, setup.extent.prompts);
    if setup.topics.contains(&Topic::Speed) {
        bench.speed(&prompts).await?;
    }
    if setup.topics.contains(&Topic::Cost) {
        bench.cost(&prompts).await?;
    }
    let Bench {
        fleet, mut report, ..
    } = bench;
    report.quiet = watch.end(&fleet.pids());
    report.settings = Settings {
        quick: setup.extent.quick,
        private: matches!(setup.service, Service::Private { .. }),
        shipped_prompts: setup.shipped_prompts,
        prompts: prompts.len(),
        tokens: setup.extent.tokens,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(report)
}

/// Splits the methods into those that the service has and those that it does not, with reasons.
async fn available(
    setup: &Setup,
    fleet: &mut Fleet<'_>,
) -> Result<(Vec<Method>, Vec<Absent>), BenchError> {
    let (mut methods, mut absent) = (vec![Method::None], Vec::new());
    let wanted = Method::ALL
        .into_iter()
        .filter(|method| *method != Method::None && setup.methods.contains(method));
    for method in wanted {
        match fleet.lacks(method).await? {
            None => methods.push(method),
            Some(reason) => absent.push(Absent { method, reason }),
        }
    }
    Ok((methods, absent))
}

impl Bench<'_> {
    fn begin(&mut self, what: &'static str, parts: usize) {
        (self.progress)(Progress::Begin { what, parts });
    }

    fn part(&mut self) {
        (self.progress)(Progress::Part);
    }

    fn extent(&self) -> Extent {
        self.setup.extent
    }

    /// Whether another round may begin after `round`, when the first one began at `began`.
    fn another(&self, round: usize, rounds: usize, began: Instant) -> bool {
        let late = |limit: Duration| round > 0 && began.elapsed() >= limit;
        round < rounds && !self.extent().limit.is_some_and(late)
    }

    /// The methods, another one first each time.
    fn order(&self, turn: usize) -> Vec<Method> {
        let mut order = self.methods.clone();
        let first = turn % order.len();
        order.rotate_left(first);
        order
    }

    /// Asks once and counts the joules.
    async fn ask(
        &mut self,
        method: Method,
        request: GenerateRequest,
    ) -> Result<(Answer, Option<f64>), BenchError> {
        let client = self.fleet.shared(method).await?;
        let pair = self.fleet.pair_name();
        let before = self.meter.joules();
        let answer = Answer::of(&client, method.apply(request.pair(pair))).await?;
        let joules = before.and_then(|before| Some(self.meter.joules()? - before));
        Ok((answer, joules))
    }

    /// What drafts with forwards of its own, the model first.
    fn computing(&self) -> Vec<(Method, Drafts)> {
        [(Method::Draft, Drafts::Model), (Method::Own, Drafts::Own)]
            .into_iter()
            .filter(|(method, _)| self.methods.contains(method))
            .collect()
    }
}
