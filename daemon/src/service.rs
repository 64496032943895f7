//! `tandem.v1.TandemService`: each call's checks in order, and nothing that takes long.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use prost::Message as _;
use tandem_proto::v1;
use tandem_proto::v1::tandem_service_server::TandemService;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use crate::computing::Computing;
use crate::config::KeepAlive;
use crate::convert::Plan;
use crate::deadline::{self, Deadline};
use crate::drafters::check_required;
use crate::entropy::Entropy;
use crate::errors;
use crate::generate::{Accepted, Call};
use crate::governor::{MemoryView, Stage};
use crate::listener;
use crate::phase::{Lifecycle, Phase, draining};
use crate::record::{Record, Totals};
use crate::residency::{Cause, Lease, NoLease, Pair, PairState, Residency, Resident};
use crate::status;
use crate::tokens::{self, Source, Terms};

/// What every call may use.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) socket: PathBuf,
    pub(crate) started: Instant,
    pub(crate) residency: Arc<Residency>,
    /// How short of memory the system is, and what was done about it.
    pub(crate) memory: watch::Sender<MemoryView>,
    /// Where the engine hangs, if it does.
    pub(crate) hanging: watch::Sender<Option<String>>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) totals: Arc<Totals>,
    pub(crate) entropy: Entropy,
    /// Who may make tokens and texts.
    pub(crate) computing: Computing,
}

impl Daemon {
    /// Returns the pair of this name; the empty name is the default pair's.
    pub(crate) fn pair(&self, name: &str) -> Result<Arc<Pair>, Status> {
        let pair = self.residency.pair(name);
        pair.map_err(|(name, known)| errors::unknown_pair(&name, &known))
    }

    /// Waits for a pair to be loaded and takes the right to use it. `named` is what the request called it: where that was
    /// nothing, and another pair becomes the default one meanwhile, that serves. `waited` is set to when the wait began,
    /// where there was one.
    pub(crate) async fn lease(
        &self,
        pair: &Arc<Pair>,
        named: &str,
        keep_alive: Option<KeepAlive>,
        waited: &mut Option<Instant>,
    ) -> Result<Lease, Status> {
        let mut pair = Arc::clone(pair);
        loop {
            match self.residency.lease(&pair, keep_alive, waited).await {
                Ok(lease) => return Ok(lease),
                Err(NoLease::Failed(failure)) => {
                    return Err(errors::pair_failed(&pair.name, &failure.error));
                }
                // Where it was named, this says that there is none of that name.
                Err(NoLease::Removed) => pair = self.pair(named)?,
            }
        }
    }

    /// Refuses new work once the daemon is ending.
    fn check_serving(&self) -> Result<(), Status> {
        if self.lifecycle.phase() == Phase::Serving {
            Ok(())
        } else {
            Err(errors::draining())
        }
    }

    /// Refuses new work while the system is short of memory and everything else was given up.
    async fn check_memory(&self) -> Result<(), Status> {
        if self.memory.borrow().stage < Stage::Refusing {
            return Ok(());
        }
        Totals::add(&self.totals.rejected, 1);
        let footprint = self.residency.footprint().await;
        Err(errors::memory_short(
            footprint.unwrap_or(0),
            self.residency.budget(),
        ))
    }

    /// Waits for a pair to be loaded, for a call without a stream.
    async fn ready(&self, named: &str) -> Result<Lease, Status> {
        self.check_serving()?;
        let pair = self.pair(named)?;
        self.residency.retry(&pair);
        let mut waited = None;
        tokio::select! {
            ready = self.lease(&pair, named, None, &mut waited) => ready,
            () = draining(self.lifecycle.watch()) => Err(errors::draining()),
        }
    }

    /// Computes an answer on a pair, once it is loaded and until the call's deadline. The input has so many bytes; `work` is
    /// given the pair, the largest answer in bytes, and what says whether to stop.
    async fn answer<T: Send + 'static>(
        &self,
        deadline: Option<Deadline>,
        named: &str,
        bytes: usize,
        work: impl FnOnce(&Resident, Terms<'_>) -> Result<T, Status> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let answer_bytes = self.residency.config().server.max_message_bytes;
        let answer = async {
            let lease = self.ready(named).await?;
            let work = move |stopped: &dyn Fn() -> bool| {
                let terms = Terms {
                    answer_bytes,
                    stopped,
                };
                work(&lease.resident, terms)
            };
            self.computing.run(bytes, work).await?.map(Response::new)
        };
        tokio::select! {
            answer = answer => answer,
            limit = deadline::passed(deadline) => Err(errors::deadline_exceeded(limit)),
        }
    }
}

/// The service; clones share the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Service(pub(crate) Arc<Daemon>);

type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Replies = Messages<v1::GenerateResponse>;

#[tonic::async_trait]
impl TandemService for Service {
    type GenerateStream = Replies;
    type WatchStream = Messages<v1::WatchResponse>;

    /// Checks what can be checked at once; waiting, even for a pair to load, happens in the stream, where the deadline
    /// is ours.
    async fn generate(
        &self,
        request: Request<v1::GenerateRequest>,
    ) -> Result<Response<Replies>, Status> {
        let arrival = Instant::now();
        let daemon = &self.0;
        // Before the phase is looked at: a drain that begins now then waits for this stream.
        let open = daemon.lifecycle.open_stream();
        daemon.check_serving()?;
        daemon.check_memory().await?;
        let deadline = Deadline::from_metadata(request.metadata(), arrival)?;
        let process = listener::process(request.extensions());
        let plan = Plan::new(request.into_inner())?;
        let pair = daemon.pair(&plan.pair)?;
        daemon.residency.retry(&pair);
        if let PairState::Cold(Some(failure)) = pair.state() {
            return Err(errors::pair_failed(&pair.name, &failure.error));
        }
        check_required(&pair, &plan)?;
        let reservation = pair.reserve().ok_or_else(|| {
            Totals::add(&daemon.totals.rejected, 1);
            errors::queue_full(&pair.name, pair.capacity())
        })?;

        let entropy = daemon.entropy.next();
        let id = if plan.request_id.is_empty() {
            format!("{entropy:016x}")
        } else {
            plan.request_id.clone()
        };
        let record = Record::begin(id, pair.name.clone(), arrival, Arc::clone(&daemon.totals));
        let accepted = Accepted {
            client: daemon.entropy.client(&plan.history, process),
            plan,
            record,
            reservation,
            entropy: daemon.entropy.next(),
        };
        let call = Call::new(Arc::clone(daemon), pair, accepted, deadline, open);
        Ok(Response::new(Box::pin(call.into_stream())))
    }

    async fn tokenize(
        &self,
        request: Request<v1::TokenizeRequest>,
    ) -> Result<Response<v1::TokenizeResponse>, Status> {
        let deadline = Deadline::from_metadata(request.metadata(), Instant::now())?;
        let request = request.into_inner();
        let bytes = request.encoded_len();
        let named = request.pair.clone();
        let source = Source::new(request)?;
        let work =
            move |resident: &Resident, terms: Terms<'_>| tokens::tokenize(resident, &source, terms);
        self.0.answer(deadline, &named, bytes, work).await
    }

    async fn detokenize(
        &self,
        request: Request<v1::DetokenizeRequest>,
    ) -> Result<Response<v1::DetokenizeResponse>, Status> {
        let deadline = Deadline::from_metadata(request.metadata(), Instant::now())?;
        let request = request.into_inner();
        let bytes = request.encoded_len();
        let v1::DetokenizeRequest { pair, token_ids } = request;
        let work = move |resident: &Resident, terms: Terms<'_>| {
            tokens::detokenize(resident, &token_ids, terms)
        };
        self.0.answer(deadline, &pair, bytes, work).await
    }

    async fn list_pairs(
        &self,
        _: Request<v1::ListPairsRequest>,
    ) -> Result<Response<v1::ListPairsResponse>, Status> {
        Ok(Response::new(status::list_pairs(&self.0)))
    }

    async fn status(
        &self,
        _: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        let daemon = Arc::clone(&self.0);
        // Reading the footprint walks page tables, which takes milliseconds for large processes.
        Ok(Response::new(
            blocking(move || status::status(&daemon)).await?,
        ))
    }

    async fn reload(
        &self,
        _: Request<v1::ReloadRequest>,
    ) -> Result<Response<v1::ReloadResponse>, Status> {
        self.0.check_serving()?;
        let reloaded = self.0.residency.reload(Cause::Call).await;
        let changes = reloaded.map_err(|error| errors::reload_failed(&error))?;
        Ok(Response::new(changes.into()))
    }

    async fn watch(
        &self,
        _: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let events = self.0.residency.events.watch();
        let ending = Box::pin(draining(self.0.lifecycle.watch()));
        Ok(Response::new(Box::pin(events.take_until(ending))))
    }
}

/// Runs something that computes for a while off the threads that serve connections.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a blocking task failed");
        errors::internal("the daemon failed on an internal error; its log has it")
    })
}
