//! `tandem.v1.TandemService`: each call's checks in order, and nothing that takes long.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use tandem_engine::policy::DraftKind;
use tandem_engine::tokenizer::SpecialTokens;
use tandem_proto::v1;
use tandem_proto::v1::tandem_service_server::TandemService;
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use crate::config::{Config, DraftConfig};
use crate::convert::{Plan, Speculation};
use crate::deadline::{self, Deadline};
use crate::entropy::Entropy;
use crate::errors;
use crate::generate::{Accepted, Call};
use crate::listener;
use crate::loading::LoaderHandle;
use crate::pair::{Pair, PairState, Warm};
use crate::phase::{Lifecycle, Phase};
use crate::platform::Platform;
use crate::record::{Record, Totals};
use crate::status;
use crate::worker::Worker;

/// What every call may use.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) config: Config,
    pub(crate) socket: PathBuf,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) started: Instant,
    /// Most memory that all pairs together may use, in bytes.
    pub(crate) budget: u64,
    /// In the order of their names.
    pub(crate) pairs: Vec<Arc<Pair>>,
    pub(crate) worker: Worker,
    pub(crate) loader: LoaderHandle,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) totals: Arc<Totals>,
    pub(crate) entropy: Entropy,
}

impl Daemon {
    /// Returns the pair of this name; the empty name is the default pair's.
    pub(crate) fn pair(&self, name: &str) -> Result<&Arc<Pair>, Status> {
        let name = if name.is_empty() {
            &self.config.default_pair
        } else {
            name
        };
        self.pairs
            .iter()
            .find(|pair| pair.name == name)
            .ok_or_else(|| {
                let known: Vec<&str> = self.pairs.iter().map(|pair| pair.name.as_str()).collect();
                errors::unknown_pair(name, &known)
            })
    }

    /// Returns what drafts for a pair, as configured; without its draft only what needs none.
    pub(crate) fn drafters(
        &self,
        pair: &Pair,
        with_draft: bool,
    ) -> impl Iterator<Item = DraftKind> {
        let draft = match pair.config.draft {
            DraftConfig::None => None,
            DraftConfig::Model(_) => Some(DraftKind::Model),
            DraftConfig::Adapter(_) | DraftConfig::Layer(_) | DraftConfig::MeasuredLayer => {
                Some(DraftKind::SelfDraft)
            }
        };
        let lookup = self
            .config
            .speculation
            .lookup_history
            .map(|_| DraftKind::Lookup);
        draft.filter(|_| with_draft).into_iter().chain(lookup)
    }

    /// Refuses a request that requires a draft where none is configured that it allows.
    fn check_required(&self, pair: &Pair, plan: &Plan) -> Result<(), Status> {
        if plan.speculation != Speculation::Required {
            return Ok(());
        }
        let Some(allowed) = plan.drafters else {
            return match pair.config.draft {
                DraftConfig::None => {
                    Err(errors::no_speculation(&pair.name, "no draft is configured"))
                }
                _ => Ok(()),
            };
        };
        if self.drafters(pair, true).any(|kind| allowed[kind.index()]) {
            return Ok(());
        }
        let why = "none of the draft methods that the request allows is configured";
        Err(errors::no_speculation(&pair.name, why))
    }

    /// Refuses new work once the daemon is ending.
    fn check_serving(&self) -> Result<(), Status> {
        if self.lifecycle.phase() == Phase::Serving {
            Ok(())
        } else {
            Err(errors::draining())
        }
    }

    /// Has a pair whose files were missing looked for again: they may have been pulled since.
    fn retry(&self, pair: &Arc<Pair>) {
        if pair.retry() {
            self.loader.load(Arc::clone(pair));
        }
    }

    /// Waits for a pair to be loaded, for a call without a stream.
    async fn ready<T>(&self, request: &Request<T>, pair: &str) -> Result<Arc<Warm>, Status> {
        let deadline = Deadline::from_metadata(request.metadata(), Instant::now())?;
        self.check_serving()?;
        let pair = self.pair(pair)?;
        self.retry(pair);
        tokio::select! {
            ready = pair.ready() => ready,
            limit = deadline::passed(deadline) => Err(errors::deadline_exceeded(limit)),
            () = crate::phase::draining(self.lifecycle.watch()) => Err(errors::draining()),
        }
    }
}

/// The service; clones share the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Service(pub(crate) Arc<Daemon>);

type Replies = Pin<Box<dyn Stream<Item = Result<v1::GenerateResponse, Status>> + Send>>;

#[tonic::async_trait]
impl TandemService for Service {
    type GenerateStream = Replies;

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
        let deadline = Deadline::from_metadata(request.metadata(), arrival)?;
        let process = listener::process(request.extensions());
        let plan = Plan::new(request.into_inner())?;
        let pair = daemon.pair(&plan.pair)?;
        daemon.retry(pair);
        if let PairState::Failed(failure) = pair.state() {
            return Err(errors::pair_failed(&pair.name, &failure.error));
        }
        daemon.check_required(pair, &plan)?;
        let reservation = pair
            .reserve()
            .inspect_err(|_| Totals::add(&daemon.totals.rejected, 1))?;

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
        let call = Call::new(
            Arc::clone(daemon),
            Arc::clone(pair),
            accepted,
            deadline,
            open,
        );
        Ok(Response::new(Box::pin(call.into_stream())))
    }

    async fn tokenize(
        &self,
        request: Request<v1::TokenizeRequest>,
    ) -> Result<Response<v1::TokenizeResponse>, Status> {
        let warm = self.0.ready(&request, &request.get_ref().pair).await?;
        let request = request.into_inner();
        let response = blocking(move || tokenize(&warm, &request)).await?;
        Ok(Response::new(response))
    }

    async fn detokenize(
        &self,
        request: Request<v1::DetokenizeRequest>,
    ) -> Result<Response<v1::DetokenizeResponse>, Status> {
        let warm = self.0.ready(&request, &request.get_ref().pair).await?;
        detokenize(&warm, &request.get_ref().token_ids).map(Response::new)
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

fn tokenize(warm: &Warm, request: &v1::TokenizeRequest) -> v1::TokenizeResponse {
    let special = if request.parse_special {
        SpecialTokens::Parse
    } else {
        SpecialTokens::AsText
    };
    let bos = if request.add_bos {
        warm.tokenizer.bos()
    } else {
        None
    };
    let token_ids: Vec<u32> = bos
        .into_iter()
        .chain(warm.tokenizer.encode(&request.text, special))
        .collect();
    let pieces = token_ids
        .iter()
        .map(|id| warm.tokenizer.piece(*id).unwrap_or_default().to_vec())
        .collect();
    v1::TokenizeResponse { token_ids, pieces }
}

fn detokenize(warm: &Warm, token_ids: &[u32]) -> Result<v1::DetokenizeResponse, Status> {
    let mut bytes = Vec::new();
    for (index, id) in token_ids.iter().enumerate() {
        let piece = warm.tokenizer.piece(*id).ok_or_else(|| {
            let size = warm.report.target.vocabulary_size;
            let problem = format!("token {id} is beyond the target's vocabulary of {size} tokens");
            errors::invalid_field(format!("token_ids[{index}]"), problem)
        })?;
        bytes.extend_from_slice(piece);
    }
    Ok(v1::DetokenizeResponse {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        bytes,
    })
}
