//! Sockets that a service manager binds and keeps: connections come before the daemon, and survive it.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use tandem_tests::grpc::{Client, channel, collect, generate, request};
use tandem_tests::{Home, eventually};
use tokio_stream::StreamExt as _;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::foreign::refuses_others;
use crate::{TANDEM, home};

/// What a service manager does: it has the socket, and passes it on as descriptor 3 with its name.
struct Manager {
    listener: UnixListener,
    notify: UnixDatagram,
}

impl Manager {
    fn new(home: &Home) -> Self {
        let socket = home.socket();
        fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let notify = UnixDatagram::bind(home.path().join("notify")).unwrap();
        notify
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            listener: UnixListener::bind(socket).unwrap(),
            notify,
        }
    }

    /// LISTEN_PID is the daemon's own number, which only the process itself knows before it starts.
    fn command(&self, home: &Home) -> Command {
        let script = "export LISTEN_PID=$$; exec \"$0\" daemon run 3<&0 </dev/null";
        let mut command = home.command_of("sh");
        command
            .args(["-c", script, TANDEM])
            .env("LISTEN_FDS", "1")
            .env("LISTEN_FDNAMES", "tandem")
            .env("NOTIFY_SOCKET", home.path().join("notify"))
            .stdin(Stdio::from(OwnedFd::from(
                self.listener.try_clone().unwrap(),
            )));
        command
    }

    /// Reads what the daemon says until it has said this.
    fn hear(&self, wanted: &str) -> String {
        let mut all = String::new();
        while !all.contains(wanted) {
            let mut text = [0; 1024];
            let length = self
                .notify
                .recv(&mut text)
                .unwrap_or_else(|error| panic!("{wanted} was not said, only {all:?}: {error}"));
            all.push_str(&String::from_utf8_lossy(&text[..length]));
            all.push('\n');
        }
        all
    }
}

#[tokio::test]
async fn connections_come_before_the_daemon_and_survive_it() {
    let home = home();
    let socket = home.socket();
    let manager = Manager::new(&home);

    let early = channel(&socket).await.unwrap();
    let command = manager.command(&home);
    let mut daemon = home.spawn_by(command);
    let mut client = Client::new(early);
    let answer = generate(&mut client, request("Hello", 4)).await.unwrap();
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 4);
    assert!(manager.hear("READY=1").starts_with("READY=1"));
    manager.hear("STATUS=serving");

    let mut stream = client
        .generate(request("Once upon a time", 60))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();
    daemon.terminate();
    let last = manager.hear("STOPPING=1");
    assert!(last.contains("EXTEND_TIMEOUT_USEC="), "{last}");
    collect(stream)
        .await
        .expect("a stream that runs ends as usual");
    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
    assert!(socket.exists(), "the socket is the manager's");

    // Between two daemons: nobody accepts it, and it waits.
    let between = channel(&socket).await.unwrap();
    let command = manager.command(daemon.home());
    daemon.relaunch(command);
    generate(&mut Client::new(between), request("Hello", 2))
        .await
        .expect("the next daemon takes the connection");
}

#[tokio::test]
async fn a_daemon_by_hand_beside_the_service_is_told_so() {
    let home = home();
    let manager = Manager::new(&home);
    let command = manager.command(&home);
    let mut daemon = home.spawn_by(command);
    daemon.wait_until_serving().await;
    let second = daemon.tandem(&["daemon", "run"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(message.contains(&daemon.pid().to_string()), "{message}");
}

#[tokio::test]
async fn what_is_no_socket_is_refused_with_its_number() {
    let home = home();
    let manager = Manager::new(&home);
    let mut command = manager.command(&home);
    command.stdin(Stdio::null());
    let mut daemon = home.spawn_by(command);
    assert_eq!(daemon.exit().await.code(), Some(69));
    assert!(daemon.log().contains("descriptor 3"), "{}", daemon.log());
}

#[tokio::test]
async fn a_service_with_a_wrong_configuration_stays_and_says_so_until_it_is_right() {
    let home = home().config("[serverr]");
    let manager = Manager::new(&home);
    let command = manager.command(&home);
    let daemon = home.spawn_by(command);
    manager.hear("READY=1");
    let mut client = daemon.client().await;
    let refused = generate(&mut client, request("Hello", 2)).await;
    let refused = refused.expect_err("there is nothing to serve");
    assert!(refused.message().contains("config.toml:1"), "{refused}");
    let health = daemon.health("").await.unwrap();
    assert_eq!(health, ServingStatus::NotServing);
    let status = daemon.tandem(&["status"]).output().unwrap();
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("did you mean \"server\""), "{status}");

    fs::write(daemon.home().paths().config_file, "[server]\n").unwrap();
    eventually("a daemon with a right configuration", async || {
        (daemon.health("").await.unwrap() == ServingStatus::Serving).then_some(())
    })
    .await;
    generate(&mut client, request("Hello", 2)).await.unwrap();
}

/// The daemon checks who calls; whoever makes the socket may make it open to all.
#[tokio::test]
#[ignore = "needs root, who alone can become somebody else; `.ci/run root` runs it"]
async fn a_socket_that_is_open_to_all_is_no_way_in() {
    assert!(rustix::process::geteuid().is_root(), "this needs root");
    let home = home();
    let socket = home.socket();
    let manager = Manager::new(&home);
    let command = manager.command(&home);
    let mut daemon = home.spawn_by(command);
    daemon.wait_until_serving().await;
    for path in [daemon.home().path(), socket.parent().unwrap(), &socket] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    refuses_others(&socket).await;
}

/// The real thing, from Debian's package `systemd`; `.ci/run test` has it, and fails where this does not run.
#[tokio::test]
#[ignore = "needs systemd-socket-activate; `.ci/run test` runs it"]
async fn systemd_starts_the_daemon_with_the_first_connection() {
    let home = home();
    let socket = home.socket();
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let mut command = home.command_of("systemd-socket-activate");
    command
        .arg(format!("--listen={}", socket.display()))
        .arg("--fdname=tandem");
    // It passes on little of its environment.
    for name in [
        "TANDEM_HOME",
        "TANDEM_LOG",
        "HOME",
        "HF_HOME",
        "HF_HUB_CACHE",
    ] {
        command.arg(format!("--setenv={name}"));
    }
    command.args([TANDEM, "daemon", "run"]);
    let mut daemon = home.spawn_by(command);

    eventually("a socket", async || socket.exists().then_some(())).await;
    let runs = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    let waiting = runs(daemon.pid());
    assert!(
        waiting.starts_with("systemd"),
        "nobody has connected: {waiting}"
    );
    let mut client = daemon.client().await;
    let answer = generate(&mut client, request("Hello", 4)).await.unwrap();
    assert_eq!(answer.complete.usage.unwrap().completion_tokens, 4);
    assert_eq!(runs(daemon.pid()).trim(), "tandem");

    daemon.terminate();
    assert_eq!(daemon.exit().await.code(), Some(0), "{}", daemon.log());
    assert!(socket.exists(), "the socket is not the daemon's to remove");
    let refused = UnixStream::connect(&socket).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
