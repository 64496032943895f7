//! One daemon for a user, found by all of their programs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tandem_tests::{eventually, models};

use super::{Background, end, said, signal};

/// A home directory instead of a home of Tandem's: what is looked for is where that follows from the environment. The models
/// are named, since the caches of this user are not to be found there.
struct Account(tempfile::TempDir);

impl Account {
    fn new() -> Self {
        let home = tempfile::Builder::new()
            .prefix("tandem-")
            .tempdir_in("/tmp")
            .unwrap();
        let pair = models::default_pair();
        let config = home.path().join(".config/tandem");
        std::fs::create_dir_all(&config).unwrap();
        let pair = format!(
            "[pairs.default]\ntarget = {:?}\ndraft = {:?}\n",
            pair.target.to_str().unwrap(),
            pair.draft.to_str().unwrap()
        );
        std::fs::write(config.join("config.toml"), pair).unwrap();
        Self(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, variables: &[(&str, &Path)], arguments: &[&str]) -> Command {
        let mut command = Command::new(crate::TANDEM);
        command.env_clear().args(arguments);
        command
            .env("HOME", self.path())
            .env("PATH", "/usr/bin:/bin");
        command.envs(variables.iter().copied());
        command.stdin(std::process::Stdio::null());
        command
    }

    /// Starts the daemon where none runs, and returns its process as `status` in the same environment tells it.
    fn pid(&self, variables: &[(&str, &Path)]) -> u64 {
        let start = self
            .command(variables, &["daemon", "start"])
            .output()
            .unwrap();
        assert!(start.status.success(), "{start:?}");
        let status = self
            .command(variables, &["status", "--json"])
            .output()
            .unwrap();
        let status: Value = serde_json::from_slice(&status.stdout)
            .unwrap_or_else(|error| panic!("{error}: {status:?}"));
        status["pid"].as_u64().unwrap()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let run = self.path().join(".local/state/tandem/run");
        for file in std::fs::read_dir(run).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            if let Some(pid) = text.lines().next().and_then(|line| line.parse().ok()) {
                end(pid);
            }
        }
    }
}

#[tokio::test]
async fn environments_that_differ_have_one_daemon() {
    let account = Account::new();
    let runtime = account.path().join("runtime");
    let other = account.path().join("other");
    let state = account.path().join("state");
    let login: &[(&str, &Path)] = &[("XDG_RUNTIME_DIR", &runtime)];
    let environments: [&[(&str, &Path)]; 4] = [
        &[],
        &[("XDG_RUNTIME_DIR", &other)],
        &[("XDG_STATE_HOME", &state)],
        login,
    ];
    let one = account.pid(login);
    for environment in environments {
        assert_eq!(account.pid(environment), one, "{environment:?}");
    }
    // What is run by hand is told, too, and where the one is.
    let second = account.command(&[], &["daemon", "run"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let message = said(&second);
    assert!(
        message.contains(&one.to_string()) && message.contains(runtime.to_str().unwrap()),
        "{message}"
    );
    let stop = account.command(&[], &["daemon", "stop"]).output().unwrap();
    assert!(
        stop.status.success() && said(&stop).contains(&one.to_string()),
        "{stop:?}"
    );
    // The other way round.
    let two = account.pid(&[]);
    assert_eq!(account.pid(login), two);
    assert_ne!(one, two);
}

#[tokio::test]
async fn a_place_that_somebody_chose_has_a_daemon_of_its_own() {
    let account = Account::new();
    let chosen = account.path().join("chosen/tandem.sock");
    let one = account.pid(&[]);
    let other = account.pid(&[("TANDEM_SOCKET", &chosen)]);
    assert_ne!(one, other, "who names a socket means that one");
    end(u32::try_from(other).unwrap());
}

#[tokio::test]
async fn clients_that_come_at_once_have_one_daemon() {
    let background = Background::new();
    let clients: Vec<_> = (0..10)
        .map(|_| {
            let mut command = background.0.command();
            command.args(["run", "--max-tokens", "2", "Hi"]);
            command
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for client in clients {
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let text = std::fs::read_to_string(background.0.paths().log_file()).unwrap();
    assert_eq!(text.matches("listening").count(), 1, "{text}");
}

#[tokio::test]
async fn a_lock_file_that_nobody_holds_names_nobody() {
    let background = Background::new();
    background.run();
    let daemon = background.pid();
    end(daemon);
    let lock = background.0.paths().lock;
    eventually("the system has let go of its lock", async || {
        std::fs::File::open(&lock).ok()?.try_lock().ok()
    })
    .await;
    // Somebody else's process has the number by now.
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let text = std::fs::read_to_string(&lock).unwrap();
    let text = text.replacen(&daemon.to_string(), &bystander.id().to_string(), 1);
    std::fs::write(&lock, text).unwrap();

    let stop = background.shell("\"$T\" daemon stop", &[]);
    assert!(
        stop.status.success() && said(&stop).contains("no daemon"),
        "{stop:?}"
    );
    let status = background.shell("\"$T\" status", &[]);
    assert_eq!(status.status.code(), Some(69), "{status:?}");
    background.run();
    assert!(bystander.try_wait().unwrap().is_none(), "nobody touched it");
    signal(bystander.id(), "KILL");
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_home_directory_that_is_not_set_is_the_accounts() {
    // Only looks, because that directory is a real one.
    let output = Command::new(crate::TANDEM)
        .env_remove("HOME")
        .env_remove("TANDEM_HOME")
        .args(["cache", "list"])
        .output()
        .unwrap();
    assert!(!said(&output).contains("HOME is not set"), "{output:?}");
}

#[tokio::test]
async fn a_program_that_was_replaced_starts_the_new_one() {
    let background = Background::new();
    let program = background.0.path().join("tandem");
    std::fs::copy(crate::TANDEM, &program).unwrap();
    let mut old = background.script(
        "exec -a x \"$P\" daemon run",
        &[("P", program.to_str().unwrap())],
    );
    let mut old = old.spawn().unwrap();
    eventually("a daemon", async || {
        background.record().and_then(|record| record.pid)
    })
    .await;
    std::fs::remove_file(&program).unwrap();
    std::fs::copy(crate::TANDEM, &program).unwrap();
    let restart = background.shell("\"$P\" daemon restart", &[("P", program.to_str().unwrap())]);
    assert!(restart.status.success(), "{restart:?}");
    old.wait().unwrap();
    let running = background.pid();
    let stop = background.shell("\"$T\" daemon stop", &[]);
    assert!(said(&stop).contains(&running.to_string()), "{stop:?}");
}
