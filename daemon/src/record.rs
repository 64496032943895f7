//! What is remembered of one request from arrival to end, the one log line that comes of it, and the daemon's totals.
//!
//! Nothing here ever holds what a request says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tandem_engine::RequestStats;

use crate::replies::Gone;

/// Counters since the daemon started.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) started: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) rejected: AtomicU64,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) completion_tokens: AtomicU64,
    pub(crate) draft_tokens: AtomicU64,
    pub(crate) accepted_tokens: AtomicU64,
    pub(crate) steps: AtomicU64,
}

impl Totals {
    /// Adds to one counter.
    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Regularly; the finish reason as it is logged.
    Finished(&'static str),
    /// Its stream went away.
    Gone(Gone),
    /// With an error of this code.
    Failed(tonic::Code),
}

/// Durations of one request, each from arrival unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// To admission by the engine.
    pub(crate) queue: Duration,
    /// To the first generated token.
    pub(crate) time_to_first_token: Duration,
    /// From the first generated token to the last.
    pub(crate) decode: Duration,
    /// To the end.
    pub(crate) total: Duration,
    /// Spent waiting for the pair to be loaded, where it was not.
    pub(crate) load: Option<Duration>,
}

/// One request's account. Dropping it without [`Record::end`] counts as a client that went away.
#[derive(Debug)]
pub(crate) struct Record {
    id: String,
    pair: String,
    arrival: Instant,
    load: Option<Duration>,
    admitted: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
    prompt_tokens: usize,
    completion_tokens: usize,
    totals: Arc<Totals>,
    ended: bool,
}

impl Record {
    /// Begins the account of a request that was accepted.
    pub(crate) fn begin(id: String, pair: String, arrival: Instant, totals: Arc<Totals>) -> Self {
        Totals::add(&totals.started, 1);
        Self {
            id,
            pair,
            arrival,
            load: None,
            admitted: None,
            first_token: None,
            last_token: None,
            prompt_tokens: 0,
            completion_tokens: 0,
            totals,
            ended: false,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn arrival(&self) -> Instant {
        self.arrival
    }

    /// The pair had to be loaded first, which took this long.
    pub(crate) fn loaded(&mut self, took: Duration) {
        self.load = Some(took);
    }

    /// The engine took the request in, with this many tokens of prompt.
    pub(crate) fn submitted(&mut self, prompt_tokens: usize) {
        self.prompt_tokens = prompt_tokens;
        Totals::add(&self.totals.prompt_tokens, prompt_tokens as u64);
    }

    /// The request left the queue.
    pub(crate) fn admitted(&mut self, now: Instant) {
        self.admitted.get_or_insert(now);
    }

    /// A step committed tokens.
    pub(crate) fn committed(&mut self, tokens: usize, now: Instant) {
        if tokens > 0 {
            self.first_token.get_or_insert(now);
            self.last_token = Some(now);
            self.completion_tokens += tokens;
            Totals::add(&self.totals.completion_tokens, tokens as u64);
        }
    }

    /// Returns the durations up to now; what did not happen counts as happening now.
    pub(crate) fn times(&self, now: Instant) -> Times {
        let since = |moment: Option<Instant>| moment.unwrap_or(now).duration_since(self.arrival);
        Times {
            queue: since(self.admitted),
            time_to_first_token: since(self.first_token),
            decode: match (self.first_token, self.last_token) {
                (Some(first), Some(last)) => last.duration_since(first),
                _ => Duration::ZERO,
            },
            total: since(None),
            load: self.load,
        }
    }

    /// Ends the account: counts it and writes its log line.
    pub(crate) fn end(mut self, outcome: Outcome, stats: Option<&RequestStats>) {
        self.close(outcome, stats);
    }

    fn close(&mut self, outcome: Outcome, stats: Option<&RequestStats>) {
        self.ended = true;
        let (counter, reason) = match outcome {
            Outcome::Finished(reason) => (&self.totals.completed, reason),
            Outcome::Gone(Gone::Client) => (&self.totals.cancelled, "cancelled"),
            Outcome::Gone(Gone::Deadline) => (&self.totals.failed, "deadline"),
            Outcome::Gone(Gone::Drained) => (&self.totals.failed, "drained"),
            Outcome::Failed(code) => (&self.totals.failed, code.description()),
        };
        Totals::add(counter, 1);
        let (drafted, accepted) =
            stats.map_or((0, 0), |stats| (stats.draft_tokens, stats.accepted_tokens));
        Totals::add(&self.totals.draft_tokens, drafted);
        Totals::add(&self.totals.accepted_tokens, accepted);

        let times = self.times(Instant::now());
        let ttft_ms = self
            .first_token
            .map(|_| round(times.time_to_first_token.as_secs_f64() * 1e3));
        // The first token's time is the prompt's; the rate counts the ones after it.
        let tok_s = (self.completion_tokens > 1 && !times.decode.is_zero())
            .then(|| round((self.completion_tokens - 1) as f64 / times.decode.as_secs_f64()));
        let speculation = stats.map(|stats| &stats.speculation);
        let ms = |seconds: f64| round(seconds * 1e3);
        tracing::info!(
            id = %self.id,
            pair = %self.pair,
            prompt_tokens = self.prompt_tokens,
            completion_tokens = self.completion_tokens,
            ttft_ms,
            tok_s,
            drafted,
            accepted,
            drafter = stats.and_then(|stats| stats.drafter),
            steps = stats.map(|stats| stats.steps),
            drafted_steps = stats.map(|stats| stats.drafted_steps),
            probe_steps = speculation.map(|did| did.probe_steps),
            forced_bypasses = speculation.map(|did| did.forced_bypasses),
            bypass_fraction = stats.map(|stats| hundredths(stats.bypass_fraction())),
            accepted_per_position = stats.map(|stats| tracing::field::debug(&stats.accepted_per_position)),
            mean_acceptance_length = stats.map(|stats| hundredths(stats.mean_acceptance_length())),
            draft_ms = speculation.map(|did| ms(did.draft_seconds)),
            verify_ms = speculation.map(|did| ms(did.verify_seconds)),
            accept_ms = speculation.map(|did| ms(did.accept_seconds)),
            cache_update_ms = speculation.map(|did| ms(did.cache_update_seconds)),
            ledger_ms = speculation.map(|did| ms(did.ledger_seconds)),
            measured_speedup = speculation.map(|did| hundredths(did.measured_speedup())),
            expected_speedup = speculation.map(|did| hundredths(did.expected_speedup())),
            load_ms = times.load.map(|load| round(load.as_secs_f64() * 1e3)),
            total_ms = round(times.total.as_secs_f64() * 1e3),
            reason,
            "request ended"
        );
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            self.close(Outcome::Gone(Gone::Client), None);
        }
    }
}

/// Rounds to a tenth, which is all a log line needs.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Rounds to a hundredth, for ratios.
fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
