//! The service over a real socket, in this process, as far as it goes without a model: health, reflection, the errors
//! of a pair that is not there, draining.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tandem_daemon::config::Config;
use tandem_daemon::listener::Listener;
use tandem_daemon::platform::FakePlatform;
use tandem_daemon::{ConfigSource, Notifier, RunError, Setup, Signal, run};
use tandem_models::Store;
use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::tandem_service_client::TandemServiceClient;
use tandem_proto::{SERVICE_NAME, v1};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

/// A daemon in this process with one pair, "absent", whose file does not exist.
struct Daemon {
    directory: TempDir,
    signals: mpsc::Sender<Signal>,
    running: JoinHandle<Result<(), RunError>>,
}

impl Daemon {
    fn start(more: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("ts").tempdir().unwrap();
        let text = format!("{more}\n[pairs.absent]\ntarget = \"./absent.gguf\"");
        let path = directory.path().join("config.toml");
        std::fs::write(&path, &text).unwrap();
        let config = Config::parse(&text, &path).unwrap();
        let socket = directory.path().join("s");
        let setup = Setup {
            source: ConfigSource {
                path: directory.path().join("config.toml"),
                required: true,
            },
            problem: None,
            config,
            listener: Listener::bind(&socket, &directory.path().join("l")).unwrap(),
            notifier: Notifier::default(),
            platform: Arc::new(FakePlatform::new(7, 10_000_000_000)),
            store: Store::from_env(directory.path().join("models")).unwrap(),
            prepared_dir: directory.path().join("prepared"),
        };
        let (signals, receiver) = mpsc::channel(2);
        let running = tokio::spawn(run(setup, receiver));
        Self {
            directory,
            signals,
            running,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn channel(&self) -> Channel {
        connect(&self.path("s")).await.unwrap()
    }

    async fn client(&self) -> TandemServiceClient<Channel> {
        TandemServiceClient::new(self.channel().await)
    }

    /// Returns how the default pair's requests fail.
    async fn failure(&self) -> Status {
        failure(&mut self.client().await, request()).await
    }
}

async fn connect(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("unix://{}", socket.display()))
        .unwrap()
        .connect()
        .await
}

fn request() -> v1::GenerateRequest {
    v1::GenerateRequest {
        input: Some(Input::Text("once".into())),
        ..Default::default()
    }
}

/// Returns the error of a call, whether it comes at once or in the stream.
async fn failure(
    client: &mut TandemServiceClient<Channel>,
    request: v1::GenerateRequest,
) -> Status {
    match client.generate(request).await {
        Err(status) => status,
        Ok(stream) => stream
            .into_inner()
            .message()
            .await
            .expect_err("no pair is loaded"),
    }
}

fn reason(status: &Status) -> String {
    let info = status
        .get_details_error_info()
        .expect("every error has one");
    assert_eq!(info.domain, "tandem.v1");
    info.reason
}

#[tokio::test]
async fn a_pair_that_is_not_there_says_so_and_is_looked_for_again() {
    let daemon = Daemon::start("");
    let status = daemon.failure().await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::FailedPrecondition, "PAIR_NOT_LOADED")
    );
    assert!(
        status.message().contains("absent.gguf does not exist"),
        "{status}"
    );

    std::fs::write(daemon.path("absent.gguf"), "no model").unwrap();
    let status = daemon.failure().await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(
        !status.message().contains("does not exist"),
        "found meanwhile: {status}"
    );
}

#[tokio::test]
async fn a_model_of_the_store_is_never_fetched_but_named() {
    let daemon =
        Daemon::start("default_pair = \"hub\"\n[pairs.hub]\ntarget = \"nobody/nothing:none.gguf\"");
    let status = daemon.failure().await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(
        status
            .message()
            .contains("tandem pull nobody/nothing:none.gguf"),
        "{status}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_request_comes_before_the_pair() {
    let daemon = Daemon::start("");
    let mut client = daemon.client().await;
    let unknown = failure(
        &mut client,
        v1::GenerateRequest {
            pair: "nonesuch".into(),
            ..request()
        },
    )
    .await;
    assert_eq!(
        (unknown.code(), reason(&unknown).as_str()),
        (Code::NotFound, "UNKNOWN_PAIR")
    );
    assert_eq!(
        unknown.get_details_resource_info().unwrap().resource_name,
        "nonesuch"
    );
    assert!(unknown.message().contains("absent"), "{unknown}");

    let empty = failure(&mut client, v1::GenerateRequest::default()).await;
    assert_eq!(
        (empty.code(), reason(&empty).as_str()),
        (Code::InvalidArgument, "INVALID_FIELD")
    );
    assert_eq!(
        empty.get_details_bad_request().unwrap().field_violations[0].field,
        "input"
    );

    let mut late = Request::new(request());
    late.metadata_mut()
        .insert("grpc-timeout", "soon".parse().unwrap());
    let late = client.generate(late).await.unwrap_err();
    assert_eq!(
        (late.code(), reason(&late).as_str()),
        (Code::InvalidArgument, "INVALID_FIELD")
    );

    let tokens = v1::TokenizeRequest {
        text: "once".into(),
        ..Default::default()
    };
    let tokens = client.tokenize(tokens).await.unwrap_err();
    assert_eq!(
        (tokens.code(), reason(&tokens).as_str()),
        (Code::FailedPrecondition, "PAIR_NOT_LOADED")
    );
}

#[tokio::test]
async fn health_and_status_say_that_nothing_is_loaded() {
    let daemon = Daemon::start("[memory]\nbudget = \"2GB\"");
    daemon.failure().await;
    let mut health = HealthClient::new(daemon.channel().await);
    for service in ["", SERVICE_NAME] {
        let check = health
            .check(HealthCheckRequest {
                service: service.into(),
            })
            .await
            .unwrap();
        assert_eq!(
            check.into_inner().status(),
            ServingStatus::NotServing,
            "{service:?}"
        );
    }
    let unknown = health
        .check(HealthCheckRequest {
            service: "other".into(),
        })
        .await
        .unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);

    let status = daemon
        .client()
        .await
        .status(v1::StatusRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(status.pid, std::process::id());
    assert_eq!(status.socket_path, daemon.path("s").display().to_string());
    let memory = status.memory.unwrap();
    assert_eq!(
        (memory.footprint, memory.budget, memory.physical),
        (7, 2_000_000_000, 10_000_000_000)
    );
    let [pair] = status.pairs.as_slice() else {
        panic!("one pair")
    };
    assert_eq!(
        (pair.running, pair.waiting, pair.queue_capacity),
        (0, 0, 64)
    );
    let info = pair.info.as_ref().unwrap();
    assert_eq!(
        (info.name.as_str(), info.is_default, info.residency()),
        ("absent", true, v1::Residency::Cold)
    );
    assert!(info.error.contains("does not exist"), "{info:?}");
}

#[tokio::test]
async fn both_reflections_list_the_services() {
    use tonic_reflection::pb::{v1, v1alpha};
    let daemon = Daemon::start("");
    let channel = daemon.channel().await;

    let request = v1::ServerReflectionRequest {
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
        ..Default::default()
    };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let mut answers = client
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap()
        .into_inner();
    let answer = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    let v1::server_reflection_response::MessageResponse::ListServicesResponse(list) = answer else {
        panic!("{answer:?}")
    };
    let names: Vec<String> = list
        .service
        .into_iter()
        .map(|service| service.name)
        .collect();
    for name in [SERVICE_NAME, "grpc.health.v1.Health"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }

    let request = v1alpha::ServerReflectionRequest {
        message_request: Some(
            v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
                SERVICE_NAME.into(),
            ),
        ),
        ..Default::default()
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers = client
        .server_reflection_info(tokio_stream::once(request))
        .await
        .unwrap()
        .into_inner();
    let answer = answers
        .message()
        .await
        .unwrap()
        .unwrap()
        .message_response
        .unwrap();
    assert!(matches!(
        answer,
        v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(_)
    ));
}

#[tokio::test]
async fn a_signal_ends_an_idle_daemon_at_once_and_takes_the_socket_along() {
    let daemon = Daemon::start("");
    daemon.failure().await;
    let socket = daemon.path("s");
    let _idle_connection = daemon.channel().await;
    daemon.signals.send(Signal::End).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(15), daemon.running)
        .await
        .expect("at once");
    ended.unwrap().expect("a clean end");
    assert!(!socket.exists());
    connect(&socket).await.expect_err("nobody accepts");
}

#[tokio::test]
async fn a_health_watch_does_not_hold_up_the_end() {
    let daemon = Daemon::start("");
    let mut health = HealthClient::new(daemon.channel().await);
    let mut watch = health
        .watch(HealthCheckRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        watch.message().await.unwrap().unwrap().status(),
        ServingStatus::NotServing
    );
    daemon.signals.send(Signal::End).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(15), daemon.running)
        .await
        .expect("within the flush time");
    ended.unwrap().expect("a clean end");
}
