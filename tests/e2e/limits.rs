//! A daemon to which the system refuses memory or disk, by limits of the process.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tandem_tests::grpc::{generate, only_pair, request, status, until_cold};
use tandem_tests::proc::address_space_bytes;
use tandem_tests::{Daemon, Home, models};
use tonic::Code;

use crate::{TANDEM, home};

/// A home with the target alone, loaded by the first request.
fn cold(home: Home) -> Home {
    home.pair("only", &models::default_pair().target, "none")
        .config("preload = false")
}

fn limit(daemon: &Daemon, resource: Resource, bytes: Option<u64>) {
    let pid = Pid::from_raw(daemon.pid().try_into().unwrap());
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(pid, resource, limit).unwrap();
}

fn file_sizes(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(fs::Metadata::is_file)
        .map(|meta| meta.len())
        .collect()
}

/// Starts the daemon such that a write beyond a limit is an error, not its end: as on a full disk.
async fn survivor(home: Home) -> Daemon {
    let mut command: Command = home.command_of("sh");
    let script = "trap '' XFSZ; exec \"$0\" daemon run";
    command.args(["-c", script, TANDEM]);
    let mut daemon = home.spawn_by(command);
    daemon.wait_until_serving().await;
    daemon
}

#[tokio::test]
async fn without_address_space_a_load_fails_and_the_daemon_stays() {
    // With the weights prepared, the next daemon only maps them.
    let first = cold(home()).start().await;
    let expected = generate(&mut first.client().await, request("Hello", 8)).await;
    let expected = expected.unwrap().text;
    drop(first);

    let daemon = cold(home()).start().await;
    let mut client = daemon.client().await;
    // Room for reading the header, not for the 97 MB of weights.
    let room = address_space_bytes(daemon.pid()) + 80_000_000;
    limit(&daemon, Resource::As, Some(room));
    let refused = generate(&mut client, request("Hello", 8)).await;
    let refused = refused.expect_err("the weights cannot be mapped");
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("cannot map 9"), "{refused}");

    limit(&daemon, Resource::As, None);
    let after = generate(&mut client, request("Hello", 8)).await.unwrap();
    assert_eq!(after.text, expected);
    let info = only_pair(&mut client).await.info.unwrap();
    assert_eq!(info.warnings, [""; 0], "nothing was made anew");
}

#[tokio::test]
async fn a_disk_that_gets_full_while_weights_are_prepared_costs_memory_and_no_request() {
    let daemon = survivor(cold(home().own_cache())).await;
    let mut client = daemon.client().await;
    limit(&daemon, Resource::Fsize, Some(10_000_000));
    let answer = generate(&mut client, request("Hello", 8)).await.unwrap();
    let info = only_pair(&mut client).await.info.unwrap();
    let told = info.warnings.join("; ");
    assert!(told.contains("packed into memory"), "{told}");
    let memory = status(&mut client).await.memory.unwrap();
    assert_eq!(memory.mapped_weights, 0);
    let left = file_sizes(&daemon.home().paths().prepared_dir());
    assert!(left.iter().all(|bytes| *bytes < 1000), "{left:?}");

    limit(&daemon, Resource::Fsize, None);
    let mut last = request("Hello", 8);
    last.keep_alive = Some(prost_types::Duration::default());
    generate(&mut client, last).await.unwrap();
    until_cold(&client).await;
    let again = generate(&mut client, request("Hello", 8)).await.unwrap();
    assert_eq!(again.text, answer.text);
    assert!(status(&mut client).await.memory.unwrap().mapped_weights > 0);
}
