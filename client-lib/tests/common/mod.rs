//! A server of the service on a socket in a temporary directory, that answers what a test tells it to.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary compiles its own copy and uses a part of it"
)]

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tandem_proto::v1::generate_response::Response as Answer;
use tandem_proto::v1::tandem_service_server::{TandemService, TandemServiceServer};
use tandem_proto::{SERVICE_NAME, v1};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

pub type Message = Result<v1::GenerateResponse, Status>;

/// One call of `Generate`.
pub struct Call {
    /// How many there were before.
    pub number: usize,
    pub request: v1::GenerateRequest,
    pub metadata: MetadataMap,
}

type Script = dyn Fn(Call) -> Result<mpsc::Receiver<Message>, Status> + Send + Sync;

/// The running server; it ends with this value.
pub struct Server {
    pub socket: PathBuf,
    pub health: HealthReporter,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves on `socket`, calling `script` for each `Generate`.
    pub async fn start(
        socket: impl AsRef<Path>,
        script: impl Fn(Call) -> Result<mpsc::Receiver<Message>, Status> + Send + Sync + 'static,
    ) -> Self {
        Self::start_with_pairs(socket, Vec::new(), script).await
    }

    pub async fn start_with_pairs(
        socket: impl AsRef<Path>,
        pairs: Vec<v1::PairInfo>,
        script: impl Fn(Call) -> Result<mpsc::Receiver<Message>, Status> + Send + Sync + 'static,
    ) -> Self {
        let socket = socket.as_ref().to_path_buf();
        let _absent = std::fs::remove_file(&socket);
        std::fs::create_dir_all(socket.parent().expect("a socket has a directory"))
            .expect("the directory is ours");
        let listener = UnixListener::bind(&socket).expect("the directory is ours");
        let calls = Arc::new(AtomicUsize::new(0));
        let service = Service {
            script: Arc::new(script),
            calls: calls.clone(),
            pairs,
        };
        let (health, health_service) = tonic_health::server::health_reporter();
        health
            .set_service_status(SERVICE_NAME, ServingStatus::Serving)
            .await;
        let server = tonic::transport::Server::builder()
            .add_service(TandemServiceServer::new(service))
            .add_service(health_service)
            .serve_with_incoming(UnixListenerStream::new(listener));
        let task = tokio::spawn(async move { server.await.expect("the listener is sound") });
        Self {
            socket,
            health,
            calls,
            task,
        }
    }

    /// Returns how often `Generate` was called.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a stream that says all of `messages` and ends.
pub fn says(messages: impl IntoIterator<Item = Message>) -> mpsc::Receiver<Message> {
    let messages: Vec<Message> = messages.into_iter().collect();
    let (sender, receiver) = mpsc::channel(messages.len().max(1));
    for message in messages {
        sender
            .try_send(message)
            .expect("there is room for all of them");
    }
    receiver
}

pub fn chunk(text: &str, token_ids: &[u32]) -> Message {
    let chunk = v1::GenerateChunk {
        text: text.to_owned(),
        token_ids: token_ids.to_vec(),
        ..Default::default()
    };
    Ok(v1::GenerateResponse {
        response: Some(Answer::Chunk(chunk)),
    })
}

pub fn complete() -> Message {
    let complete = v1::GenerateComplete {
        finish_reason: v1::FinishReason::Stop.into(),
        usage: Some(v1::Usage {
            prompt_tokens: 3,
            completion_tokens: 2,
        }),
        pair: "default".to_owned(),
        ..Default::default()
    };
    Ok(v1::GenerateResponse {
        response: Some(Answer::Complete(complete)),
    })
}

struct Service {
    script: Arc<Script>,
    calls: Arc<AtomicUsize>,
    pairs: Vec<v1::PairInfo>,
}

#[tonic::async_trait]
impl TandemService for Service {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;
    type GenerateStream = Pin<Box<ReceiverStream<Message>>>;

    async fn generate(
        &self,
        request: Request<v1::GenerateRequest>,
    ) -> Result<Response<Self::GenerateStream>, Status> {
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let metadata = request.metadata().clone();
        let receiver = (self.script)(Call {
            number,
            request: request.into_inner(),
            metadata,
        })?;
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn tokenize(
        &self,
        request: Request<v1::TokenizeRequest>,
    ) -> Result<Response<v1::TokenizeResponse>, Status> {
        let text = request.into_inner().text;
        let pieces = text.bytes().map(|byte| vec![byte]).collect();
        Ok(Response::new(v1::TokenizeResponse {
            token_ids: text.bytes().map(u32::from).collect(),
            pieces,
            ..v1::TokenizeResponse::default()
        }))
    }

    async fn detokenize(
        &self,
        _: Request<v1::DetokenizeRequest>,
    ) -> Result<Response<v1::DetokenizeResponse>, Status> {
        Err(Status::unimplemented("not part of these tests"))
    }

    async fn list_pairs(
        &self,
        _: Request<v1::ListPairsRequest>,
    ) -> Result<Response<v1::ListPairsResponse>, Status> {
        Ok(Response::new(v1::ListPairsResponse {
            pairs: self.pairs.clone(),
        }))
    }

    async fn reload(
        &self,
        _: Request<v1::ReloadRequest>,
    ) -> Result<Response<v1::ReloadResponse>, Status> {
        Ok(Response::new(v1::ReloadResponse {
            changed: vec!["default".to_owned()],
            ..Default::default()
        }))
    }

    async fn watch(
        &self,
        _: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let event = v1::WatchResponse {
            pair: "default".to_owned(),
            event: Some(v1::watch_response::Event::Missed(3)),
        };
        Ok(Response::new(Box::pin(tokio_stream::once(Ok(event)))))
    }

    async fn status(
        &self,
        _: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        Ok(Response::new(v1::StatusResponse {
            server_version: "9.9.9".to_owned(),
            api_version: 1,
            ..Default::default()
        }))
    }
}
