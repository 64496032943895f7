//! A daemon's process.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::grpc::{self, Client};
use crate::{Home, eventually};

/// A running daemon. Dropping it kills the process; in a test that fails, it prints the log.
#[derive(Debug)]
pub struct Daemon {
    home: Home,
    child: Child,
}

impl Daemon {
    pub(crate) fn spawn(home: Home, command: Command) -> Self {
        let child = Self::launch(&home, command);
        Self { home, child }
    }

    fn launch(home: &Home, mut command: Command) -> Child {
        let log = File::options()
            .create(true)
            .append(true)
            .open(log_path(home))
            .expect("the log can be opened");
        command
            .env("TANDEM_LOG", "info")
            .stdout(log.try_clone().expect("a file handle can be duplicated"))
            .stderr(log)
            .spawn()
            .expect("the daemon's process starts")
    }

    /// Returns the directory that the daemon lives in.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what the daemon has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(log_path(&self.home)).map_or_else(
            |error| format!("(no log: {error})"),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    /// Connects to the socket; nothing is retried.
    pub async fn client(&self) -> Client {
        grpc::client(&self.home.socket()).await
    }

    /// Returns what the daemon says about its health: of itself, or of one service.
    ///
    /// # Errors
    /// When the socket does not answer, or the service is not known.
    pub async fn health(&self, service: &str) -> Result<ServingStatus, tonic::Status> {
        let channel: Channel = grpc::channel(&self.home.socket())
            .await
            .map_err(|error| tonic::Status::unavailable(error.to_string()))?;
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        Ok(HealthClient::new(channel)
            .check(request)
            .await?
            .into_inner()
            .status())
    }

    /// Waits until the daemon serves.
    ///
    /// # Panics
    /// When the process ends first, or takes too long; the message holds its log.
    pub async fn wait_until_serving(&mut self) {
        eventually("a serving daemon", async || {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                panic!("the daemon ended with {status} before it served");
            }
            (self.health("").await.ok()? == ServingStatus::Serving).then_some(())
        })
        .await;
    }

    /// Asks the daemon to end, as service managers do.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Ends the process at once, so that nothing is cleaned up, and waits for that.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name, such as `HUP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status();
        assert!(
            status.expect("kill can be run").success(),
            "the daemon could not be signalled"
        );
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// When it takes too long.
    pub async fn exit(&mut self) -> ExitStatus {
        let child = &mut self.child;
        eventually("the daemon's end", async || {
            child.try_wait().expect("a child can be waited for")
        })
        .await
    }

    /// Returns how the process ended; `None`: it has not.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    /// Starts the process anew in the same directory, after it has ended, and waits until it serves.
    pub async fn restart(&mut self) {
        assert!(
            self.child
                .try_wait()
                .expect("a child can be waited for")
                .is_some(),
            "the daemon is still running"
        );
        let mut command = self.home.command();
        command.args(["daemon", "run"]);
        self.relaunch(command);
        self.wait_until_serving().await;
    }

    /// Starts the process anew by a command of the test's, after it has ended.
    pub fn relaunch(&mut self, command: Command) {
        self.child = Self::launch(&self.home, command);
    }

    /// Returns a `tandem` command for this daemon, with its output captured.
    #[must_use]
    pub fn tandem(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command();
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!(
                "--- log of the daemon ---\n{}--- end of the log ---",
                self.log()
            );
        }
    }
}

fn log_path(home: &Home) -> PathBuf {
    home.path().join("test.log")
}
