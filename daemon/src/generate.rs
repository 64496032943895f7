//! One `Generate` call from acceptance to its last message, as a stream that does the next thing when it is polled.
//!
//! Dropping the stream is the one way to cancel: it drops what the call holds, whichever stage it is in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream;
use tandem_engine::{ClientKey, FinishReason, Request, RequestStats};
use tandem_model::TokenId;
use tandem_proto::v1;
use tokio_stream::Stream;
use tonic::Status;

use crate::config::KeepAlive;
use crate::convert::{self, Input, Plan, Speculation};
use crate::deadline::{self, Deadline};
use crate::drafters::drafters;
use crate::errors;
use crate::phase::OpenStream;
use crate::record::{Outcome, Record};
use crate::replies::{self, Finished, Gone, Replies, Reply};
use crate::residency::{Lease, Pair, Reservation};
use crate::service::Daemon;
use crate::tokens;
use crate::worker::Job;

/// A request that passed every check that needs no waiting.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) plan: Plan,
    pub(crate) record: Record,
    pub(crate) reservation: Reservation,
    /// Whose finished texts help to guess.
    pub(crate) client: Option<ClientKey>,
    /// Randomness for a request without a seed.
    pub(crate) entropy: u64,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    daemon: Arc<Daemon>,
    pair: Arc<Pair>,
    request_id: String,
    deadline: Option<Deadline>,
    open: OpenStream,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Accepted(Box<Accepted>),
    Streaming(Replies),
    Ended,
}

type Item = Result<v1::GenerateResponse, Status>;

impl Call {
    pub(crate) fn new(
        daemon: Arc<Daemon>,
        pair: Arc<Pair>,
        accepted: Accepted,
        deadline: Option<Deadline>,
        open: OpenStream,
    ) -> Self {
        let request_id = accepted.record.id().to_owned();
        Self {
            daemon,
            pair,
            request_id,
            deadline,
            open,
            stage: Stage::Accepted(Box::new(accepted)),
        }
    }

    /// Returns the messages of the call.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Item> + Send {
        stream::unfold(self, |mut call| async move {
            call.next().await.map(|item| (item, call))
        })
    }

    async fn next(&mut self) -> Option<Item> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Ended) {
                Stage::Accepted(accepted) => match self.start(*accepted).await {
                    Ok(replies) => self.stage = Stage::Streaming(replies),
                    Err(status) => return Some(Err(status)),
                },
                Stage::Streaming(replies) => return self.relay(replies).await,
                Stage::Ended => return None,
            }
        }
    }

    /// Waits for the pair, makes tokens of the input, and hands the request to the engine thread.
    async fn start(&mut self, accepted: Accepted) -> Result<Replies, Status> {
        let Accepted {
            plan,
            mut record,
            reservation,
            client,
            entropy,
        } = accepted;
        // A limit too far away for the clock is none.
        let time_limit = plan
            .time_limit
            .and_then(|limit| record.arrival().checked_add(limit));
        let wanted = Wanted {
            keep_alive: plan.keep_alive,
            input: plan.input,
            max_tokens: plan
                .stop
                .max_tokens
                .and_then(|tokens| u32::try_from(tokens).ok()),
        };
        let prepared = tokio::select! {
            biased;
            (gone, status) = interrupted(self.deadline, &mut self.open, &self.daemon) => {
                record.end(Outcome::Gone(gone), None);
                return Err(status);
            }
            prepared = prepare(&self.daemon, &self.pair, &plan.pair, wanted) => prepared,
            () = sleep_until(time_limit) => return Ok(out_of_time(record)),
        };
        let Prepared {
            prompt,
            lease,
            load,
        } = match prepared {
            Ok(prepared) => prepared,
            Err(status) => {
                record.end(Outcome::Failed(status.code()), None);
                return Err(status);
            }
        };
        // Another one, where the default pair changed meanwhile.
        self.pair = Arc::clone(lease.pair());
        if let Some(took) = load {
            record.loaded(took);
        }
        let request = Request {
            prompt,
            sampling: plan.sampling,
            stop: plan.stop,
            speculation: plan.speculation != Speculation::Off,
            client,
            drafters: plan.drafters,
            draft_length: plan.draft_length,
            logprobs: plan.logprobs,
            draft_width: plan.draft_width,
            deadline: time_limit,
            entropy,
        };
        let (sink, replies) = replies::channel();
        // Lookup needs nothing that could be missing; only of a draft does the engine know.
        let require_speculation = plan.speculation == Speculation::Required
            && !plan.drafters.is_some_and(|allowed| {
                // What serves without a draft needs none to be resident.
                let mut always = drafters(&lease.resident.recipe, false);
                always.any(|kind| allowed[kind.index()])
            });
        self.daemon.residency.worker.submit(Job {
            request,
            require_speculation,
            record,
            sink,
            reservation,
            lease,
        });
        Ok(replies)
    }

    /// Passes on the next reply, unless time is up.
    async fn relay(&mut self, mut replies: Replies) -> Option<Item> {
        let reply = tokio::select! {
            biased;
            (gone, status) = interrupted(self.deadline, &mut self.open, &self.daemon) => {
                replies.abandon(gone);
                return Some(Err(status));
            }
            reply = replies.next() => reply?,
        };
        Some(match reply {
            Reply::Chunk(chunk) => {
                self.stage = Stage::Streaming(replies);
                Ok(convert::chunk(chunk))
            }
            Reply::Finished(finished) => Ok(convert::complete(
                *finished,
                self.pair.name.clone(),
                std::mem::take(&mut self.request_id),
            )),
            Reply::Failed(status) => Err(status),
        })
    }
}

/// Waits for the deadline or the end of the daemon.
async fn interrupted(
    deadline: Option<Deadline>,
    open: &mut OpenStream,
    daemon: &Daemon,
) -> (Gone, Status) {
    tokio::select! {
        limit = deadline::passed(deadline) => (Gone::Deadline, errors::deadline_exceeded(limit)),
        () = open.ended() => (Gone::Drained, errors::drain_expired(daemon.residency.config().server.drain)),
    }
}

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends a request whose time limit passed before the engine saw it, as the engine would have.
fn out_of_time(record: Record) -> Replies {
    let (sink, replies) = replies::channel();
    let times = record.times(Instant::now());
    record.end(Outcome::Finished("time_limit"), None);
    sink.finish(Finished {
        reason: FinishReason::TimeLimit,
        stats: RequestStats::default(),
        times,
    });
    replies
}

/// What an input became.
struct Prepared {
    prompt: Vec<TokenId>,
    /// The load whose tokens these are, and on which they run.
    lease: Lease,
    /// How long that took to be there, where it was not.
    load: Option<Duration>,
}

/// What is to become a prompt.
struct Wanted {
    keep_alive: Option<KeepAlive>,
    input: Input,
    /// For messages.
    max_tokens: Option<u32>,
}

/// Waits for the pair to be loaded and makes tokens of the input.
async fn prepare(
    daemon: &Daemon,
    pair: &Arc<Pair>,
    named: &str,
    wanted: Wanted,
) -> Result<Prepared, Status> {
    let Wanted {
        keep_alive,
        input,
        max_tokens,
    } = wanted;
    let mut waited = None;
    let lease = daemon.lease(pair, named, keep_alive, &mut waited).await?;
    let load = waited.map(|since| since.elapsed());
    let resident = Arc::clone(&lease.resident);
    tokens::check_length(&resident, &input, max_tokens)?;
    let making = daemon.computing.run(tokens::bytes(&input), move |stopped| {
        tokens::prompt(&resident, input, max_tokens, stopped)
    });
    let prompt = making.await??;
    Ok(Prepared {
        prompt,
        lease,
        load,
    })
}
