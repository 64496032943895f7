//! A daemon in this process, its directory, and its clients.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tandem_daemon::config::Config;
use tandem_daemon::listener::Listener;
use tandem_daemon::platform::FakePlatform;
use tandem_daemon::{ConfigSource, Notifier, RunError, Setup, Signal, run};
use tandem_model::testing::TinyModel;
use tandem_models::Store;
use tandem_proto::v1;
use tandem_proto::v1::tandem_service_client::TandemServiceClient;
use tandem_proto::v1::watch_response::Event;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Status, Streaming};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

pub(crate) use crate::streams::*;

pub(crate) type Client = TandemServiceClient<Channel>;

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(60);

const TARGET: TinyModel = TinyModel {
    architecture: "llama",
    layers: 4,
    width: 64,
    inner: 128,
    heads: 4,
    kv_heads: 2,
    context_length: 4096,
    seed: 7,
    spread: 0.5,
};

/// What every config here has.
pub(crate) const COMMON: &str =
    "[engine]\ndevice = \"cpu\"\nthreads = 1\n[memory]\nrestore_after = \"40ms\"\n";

/// A pair of the config, by the stems of its files.
pub(crate) fn pair(name: &str, target: &str, draft: &str) -> String {
    let draft = match draft {
        "none" | "self" => draft.to_owned(),
        file => format!("./{file}.gguf"),
    };
    format!("[pairs.{name}]\ntarget = \"./{target}.gguf\"\ndraft = \"{draft}\"\n")
}

/// One pair, "main", of `a` and `small`.
pub(crate) fn usual() -> String {
    format!("{COMMON}{}", pair("main", "a", "small"))
}

/// The same with a budget of so many bytes.
pub(crate) fn within(budget: u64, config: &str) -> String {
    config.replace(
        "restore_after",
        &format!("budget = \"{budget}b\"\nrestore_after"),
    )
}

/// Bytes that the one pair of a config needs at least.
pub(crate) async fn needed(config: &str) -> u64 {
    let world = World::start(&within(1000, config)).await;
    let error = world.info("main").await.error;
    let number = error
        .split("needs ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let number = number.unwrap_or_else(|| panic!("no number in {error}"));
    number.parse().unwrap()
}

pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) platform: FakePlatform,
    pub(crate) signals: mpsc::Sender<Signal>,
    pub(crate) running: JoinHandle<Result<(), RunError>>,
}

impl World {
    /// Starts a daemon with this config, and models that it can name: targets `a`, `b` and `other` (of another vocabulary),
    /// the draft `small`, the exit adapter `exit` of `a`.
    pub(crate) async fn start(config: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("tr").tempdir().unwrap();
        let write = |name: &str, bytes: Vec<u8>| {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        };
        write("a.gguf", TARGET.gguf());
        write("b.gguf", TinyModel { seed: 9, ..TARGET }.gguf());
        let small = TinyModel {
            layers: 1,
            seed: 8,
            ..TARGET
        };
        write("small.gguf", small.gguf());
        write("exit.gguf", TARGET.exit_adapter(2));
        write("config.toml", config.into());
        let world = Self::launch(directory);
        world.served().await;
        world
    }

    fn launch(directory: TempDir) -> Self {
        let platform = FakePlatform::new(7, 10_000_000_000);
        let (signals, receiver) = mpsc::channel(4);
        let path = directory.path().join("config.toml");
        let setup = Setup {
            config: Config::load(&path, true).unwrap(),
            problem: None,
            source: ConfigSource {
                path,
                required: true,
            },
            listener: Listener::bind(&directory.path().join("s"), &directory.path().join("l"))
                .unwrap(),
            notifier: Notifier::default(),
            platform: std::sync::Arc::new(platform.clone()),
            store: Store::from_env(directory.path().join("models")).unwrap(),
            prepared_dir: directory.path().join("prepared"),
        };
        let running = tokio::spawn(run(setup, receiver));
        Self {
            directory,
            platform,
            signals,
            running,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes the config in place.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path("config.toml"), text).unwrap();
    }

    /// Writes the config so that only a reload that is asked for sees it: with the name in place at once.
    pub(crate) async fn reload(&self, text: &str) -> Result<v1::ReloadResponse, Status> {
        let new = self.path("config.new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path("config.toml")).unwrap();
        let answer = self.client().await.reload(v1::ReloadRequest {}).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn channel(&self) -> Channel {
        let socket = self.path("s");
        Endpoint::from_shared(format!("unix://{}", socket.display()))
            .unwrap()
            .connect()
            .await
            .unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        TandemServiceClient::new(self.channel().await)
    }

    pub(crate) async fn status(&self) -> v1::StatusResponse {
        let mut client = self.client().await;
        client
            .status(v1::StatusRequest {})
            .await
            .unwrap()
            .into_inner()
    }

    pub(crate) async fn info(&self, name: &str) -> v1::PairInfo {
        let status = self.status().await;
        let infos = status.pairs.into_iter().filter_map(|pair| pair.info);
        let mut infos = infos.filter(|info| info.name == name);
        infos
            .next()
            .unwrap_or_else(|| panic!("there is no pair {name}"))
    }

    pub(crate) async fn health(&self) -> ServingStatus {
        let mut client = HealthClient::new(self.channel().await);
        let answer = client.check(HealthCheckRequest::default()).await;
        answer.unwrap().into_inner().status()
    }

    /// Waits until no pair is loading.
    async fn served(&self) {
        eventually("all pairs are loaded", async || {
            let pairs = self.status().await.pairs;
            let mut infos = pairs.into_iter().filter_map(|pair| pair.info);
            infos.all(|info| info.residency() != v1::Residency::Loading)
        })
        .await;
    }

    /// Watches from now on.
    pub(crate) async fn events(&self) -> Events {
        let mut client = self.client().await;
        Events(
            client
                .watch(v1::WatchRequest {})
                .await
                .unwrap()
                .into_inner(),
        )
    }
}

/// What a daemon tells.
pub(crate) struct Events(Streaming<v1::WatchResponse>);

impl Events {
    pub(crate) async fn next(&mut self) -> Option<(String, Event)> {
        let next = tokio::time::timeout(LIMIT, self.0.message());
        let message = next.await.expect("an event comes").unwrap()?;
        Some((message.pair, message.event.expect("events are known")))
    }

    /// Waits for the first event that `pick` takes.
    pub(crate) async fn find<T>(&mut self, mut pick: impl FnMut(&str, Event) -> Option<T>) -> T {
        loop {
            let (pair, event) = self.next().await.expect("the daemon goes on");
            if let Some(found) = pick(&pair, event) {
                return found;
            }
        }
    }

    pub(crate) async fn shed(&mut self) -> v1::DraftShed {
        self.find(|_, event| match event {
            Event::Shed(shed) => Some(shed),
            _ => None,
        })
        .await
    }

    pub(crate) async fn restored(&mut self) {
        self.find(|_, event| matches!(event, Event::Restored(_)).then_some(()))
            .await;
    }

    pub(crate) async fn unloaded(&mut self) -> v1::PairUnloaded {
        self.find(|_, event| match event {
            Event::Unloaded(unloaded) => Some(unloaded),
            _ => None,
        })
        .await
    }
}

pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < end, "it never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Open descriptors of this process.
#[cfg(target_os = "linux")]
pub(crate) fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

pub(crate) fn rename_over(text: &str, path: &Path) {
    let new = path.with_extension("swp");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}
