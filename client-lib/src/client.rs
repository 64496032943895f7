//! Calls to the daemon over one lazily opened channel.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tandem_proto::SERVICE_NAME;
use tandem_proto::paths::{self, Paths};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::door;
use crate::launch;
use crate::stream::Deadline;
use crate::v1::tandem_service_client::TandemServiceClient;
use crate::{Error, Events, GenerateRequest, Retry, TokenStream, v1};

/// Largest answer taken, in bytes: the pieces of a long text's tokens are bigger than the transport's default allows.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// A daemon that answers at all answers a health check within this.
const HEALTH_LIMIT: Duration = Duration::from_secs(5);
/// Longest deadline that is passed on; the transport cannot express arbitrarily long ones.
const LONGEST_DEADLINE: Duration = Duration::from_secs(365 * 24 * 3600);

/// A client of one daemon. Cloning is cheap, and clones share the connection.
///
/// Nothing is connected before the first call. The connection belongs to the runtime of that call, and is opened again
/// whenever it broke.
#[derive(Clone, Debug)]
pub struct Client {
    socket: Arc<Path>,
    channel: Arc<OnceLock<Channel>>,
    retry: Retry,
}

/// Whether the daemon takes requests for its default pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Serving,
    /// It answers, but is loading, could not load, or is ending.
    NotServing,
}

impl Client {
    /// Makes a client of the daemon that the environment names, or of the one of this user that runs already, wherever the
    /// environment that it was started from has its socket.
    ///
    /// # Errors
    /// Returns [`Error::Paths`] where the environment names none.
    pub fn from_env() -> Result<Self, Error> {
        Self::new(launch::socket(&Paths::from_env()?))
    }

    /// Makes a client of the daemon on this socket.
    ///
    /// # Errors
    /// Returns an error where no socket can have this path.
    pub fn new(socket: impl Into<PathBuf>) -> Result<Self, Error> {
        let socket = socket.into();
        paths::check_socket_path(&socket)?;
        if socket.to_str().is_none() {
            return Err(Error::SocketPathNotUtf8 { socket });
        }
        Ok(Self {
            socket: socket.into(),
            channel: Arc::default(),
            retry: Retry::default(),
        })
    }

    /// Replaces the rules for making failed calls again.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Returns the socket of the daemon.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Starts a generation and waits for its first event. Dropping the future or the stream cancels it.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with, after the retries that [`Retry`] allows.
    pub async fn generate(
        &self,
        request: impl Into<GenerateRequest>,
    ) -> Result<TokenStream, Error> {
        let request = request.into();
        let deadline = request
            .deadline
            .map(|limit| limit.min(LONGEST_DEADLINE))
            .map(|limit| Deadline {
                at: Instant::now() + limit,
                limit,
            });
        let opened = self.retry.run(|| self.open(&request.message, deadline));
        match deadline {
            Some(Deadline { at, limit }) => timeout_at(at, opened)
                .await
                .unwrap_or_else(|_| Err(Error::deadline(limit)))
                .map_err(|error| error.of_limit(limit)),
            None => opened.await,
        }
    }

    async fn open(
        &self,
        message: &v1::GenerateRequest,
        deadline: Option<Deadline>,
    ) -> Result<TokenStream, Error> {
        let mut request = tonic::Request::new(message.clone());
        if let Some(deadline) = deadline {
            request.set_timeout(deadline.at.saturating_duration_since(Instant::now()));
        }
        let failed = |status: tonic::Status| self.failed(&status);
        let mut messages = self
            .service()
            .generate(request)
            .await
            .map_err(failed)?
            .into_inner();
        // A call can still be refused in its trailers; only its first message says that it runs.
        let first = messages.message().await.map_err(failed)?;
        if first.is_none() {
            return Err(Error::UnexpectedEnd);
        }
        Ok(TokenStream::new(
            first,
            messages,
            deadline,
            self.socket.clone(),
        ))
    }

    /// Turns text into token ids.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub async fn tokenize(
        &self,
        request: v1::TokenizeRequest,
    ) -> Result<v1::TokenizeResponse, Error> {
        self.unary(|mut service| {
            let request = request.clone();
            async move { service.tokenize(request).await }
        })
        .await
    }

    /// Turns token ids back into text.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub async fn detokenize(
        &self,
        request: v1::DetokenizeRequest,
    ) -> Result<v1::DetokenizeResponse, Error> {
        self.unary(|mut service| {
            let request = request.clone();
            async move { service.detokenize(request).await }
        })
        .await
    }

    /// Lists the configured pairs.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub async fn list_pairs(&self) -> Result<Vec<v1::PairInfo>, Error> {
        let answer = self
            .unary(|mut service| async move { service.list_pairs(v1::ListPairsRequest {}).await })
            .await?;
        Ok(answer.pairs)
    }

    /// Asks what the daemon is doing.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub async fn status(&self) -> Result<v1::StatusResponse, Error> {
        self.unary(|mut service| async move { service.status(v1::StatusRequest {}).await })
            .await
    }

    /// Has the daemon read its configuration again, waits until what that asks for is loaded, and returns what changed.
    ///
    /// # Errors
    /// Returns [`Error::ReloadFailed`] where something is wrong with the configuration, and everything stayed as it
    /// was.
    pub async fn reload(&self) -> Result<v1::ReloadResponse, Error> {
        self.unary(|mut service| async move { service.reload(v1::ReloadRequest {}).await })
            .await
    }

    /// Watches what happens to pairs and memory from now on.
    ///
    /// # Errors
    /// Returns the error that the daemon answered with.
    pub async fn watch(&self) -> Result<Events, Error> {
        let messages = self
            .retry
            .run(|| async {
                let answer = self.service().watch(v1::WatchRequest {}).await;
                Ok(answer.map_err(|status| self.failed(&status))?.into_inner())
            })
            .await?;
        Ok(Events::new(messages, self.socket.clone()))
    }

    /// Asks once whether the daemon takes requests.
    ///
    /// # Errors
    /// Returns an error where the daemon does not answer.
    pub async fn health(&self) -> Result<Health, Error> {
        let mut client = HealthClient::new(self.channel());
        let request = HealthCheckRequest {
            service: SERVICE_NAME.to_owned(),
        };
        let answer = match timeout(HEALTH_LIMIT, client.check(request)).await {
            Ok(answer) => answer.map_err(|status| self.failed(&status))?,
            Err(_) => return Err(Error::deadline(HEALTH_LIMIT)),
        };
        match answer.into_inner().status() {
            ServingStatus::Serving => Ok(Health::Serving),
            _ => Ok(Health::NotServing),
        }
    }

    async fn unary<T, F>(
        &self,
        call: impl Fn(TandemServiceClient<Channel>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        self.retry
            .run(|| {
                let answer = call(self.service());
                async {
                    Ok(answer
                        .await
                        .map_err(|status| self.failed(&status))?
                        .into_inner())
                }
            })
            .await
    }

    fn service(&self) -> TandemServiceClient<Channel> {
        TandemServiceClient::new(self.channel()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Opens the channel on first use rather than in `new`, because it needs a running runtime.
    fn channel(&self) -> Channel {
        // A socket path is no valid `:authority`; servers in other languages check.
        let open = || {
            Endpoint::from_static("http://localhost")
                .connect_with_connector_lazy(door::connector(self.socket.clone()))
        };
        self.channel.get_or_init(open).clone()
    }

    fn failed(&self, status: &tonic::Status) -> Error {
        Error::from_status(status, &self.socket)
    }
}
