//! A home of its own for the command, and the server in it.
#![allow(unreachable_pub, reason = "a module of a test has no outside")]

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc as std_mpsc;
use std::time::Duration;

use tandem_proto::paths::Paths;
use tandem_proto::v1;
use tandem_proto::v1::generate_request::Input;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tonic::Status;

use crate::common::{Call, Message, Server};

/// A home of its own, and the server in it.
pub struct World {
    pub home: TempDir,
    pub requests: std_mpsc::Receiver<v1::GenerateRequest>,
    pub runtime: Runtime,
    _server: Option<Server>,
}

impl World {
    pub fn empty() -> Self {
        let home = tempfile::Builder::new()
            .prefix("tandem-")
            .tempdir()
            .expect("a temporary directory can be made");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        Self {
            home,
            requests: std_mpsc::channel().1,
            runtime,
            _server: None,
        }
    }

    pub fn with(
        script: impl Fn(Call) -> Result<mpsc::Receiver<Message>, Status> + Send + Sync + 'static,
    ) -> Self {
        let mut world = Self::empty();
        let (seen, requests) = std_mpsc::channel();
        let socket = Paths::under(world.home.path()).socket;
        let start = Server::start(socket, move |call: Call| {
            seen.send(call.request.clone()).expect("the test listens");
            script(call)
        });
        world._server = Some(world.runtime.block_on(start));
        world.requests = requests;
        world
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.args(arguments).env("TANDEM_HOME", self.home.path());
        for variable in ["TANDEM_SOCKET", "TANDEM_CONFIG", "TANDEM_DAEMON"] {
            command.env_remove(variable);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tandem can be run")
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("tandem can be run");
        child
            .stdin
            .take()
            .expect("it is piped")
            .write_all(input.as_bytes())
            .expect("tandem reads its input");
        child.wait_with_output().expect("tandem ends")
    }

    pub fn request(&self) -> v1::GenerateRequest {
        self.requests
            .recv_timeout(Duration::from_secs(120))
            .expect("a request was made")
    }
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

pub fn messages(request: v1::GenerateRequest) -> Vec<(String, String)> {
    let Some(Input::Chat(chat)) = request.input else {
        panic!("no conversation: {request:?}")
    };
    chat.messages
        .into_iter()
        .map(|message| (message.role, message.content))
        .collect()
}

pub fn said(role: &str, content: &str) -> (String, String) {
    (role.to_owned(), content.to_owned())
}
