//! Limits of the process: what meets one is an error like others.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use tandem_proto::v1::Residency;
use tandem_tests::grpc::{generate, only_pair, request, status};
use tandem_tests::{Daemon, Home, eventually, models};
use tonic_types::StatusExt;

use crate::{TANDEM, home};

/// Starts a daemon under a limit of the shell's.
fn limited(home: Home, limit: &str) -> Daemon {
    let mut command = home.command_of("sh");
    command.args(["-c", &format!("{limit}; exec \"$0\" daemon run"), TANDEM]);
    home.spawn_by(command)
}

#[tokio::test]
async fn a_file_size_limit_costs_memory_and_not_the_daemon() {
    let home = home().own_cache();
    let home = home.pair("only", &models::default_pair().target, "none");
    // Blocks of 512 bytes or of 1 KiB, by the shell; less than the weights take in any case.
    let mut daemon = limited(home, "ulimit -f 20000");
    daemon.wait_until_serving().await;
    let mut client = daemon.client().await;
    generate(&mut client, request("Hello", 8)).await.unwrap();
    let info = only_pair(&mut client).await.info.unwrap();
    let told = info.warnings.join("; ");
    assert!(told.contains("packed into memory"), "{told}");
    assert_eq!(status(&mut client).await.memory.unwrap().mapped_weights, 0);
    let left = fs::read_dir(daemon.home().paths().prepared_dir()).unwrap();
    let left = left.map(|entry| entry.unwrap().metadata().unwrap());
    let large = left.filter(|meta| meta.is_file() && meta.len() > 1000);
    assert_eq!(large.count(), 0, "nothing half-written is left");
}

#[tokio::test]
async fn a_log_that_meets_a_limit_ends_nothing() {
    // The log of the test is a file like others: two blocks are full before the daemon serves.
    let home = home().config("[engine]\nprepared = false");
    let mut daemon = limited(home, "ulimit -f 2");
    daemon.wait_until_serving().await;
    let mut client = daemon.client().await;
    for _ in 0..20 {
        generate(&mut client, request("Hello", 8)).await.unwrap();
    }
}

/// What came of a daemon that may have so many KiB of address space.
async fn within(kib: u32, prepared: bool) -> String {
    let files = models::default_pair();
    let home = home()
        .config(&format!("[engine]\nprepared = {prepared}"))
        .pair("only", &files.target, &files.draft);
    let mut daemon = limited(home, &format!("ulimit -v {kib}"));
    let ended = eventually("an end, or a state of the pair", async || {
        if let Some(status) = daemon.ended() {
            return Some(Some(status));
        }
        daemon.health("").await.ok()?;
        let info = only_pair(&mut daemon.client().await).await.info?;
        let settled = info.residency() == Residency::Warm || !info.error.is_empty();
        settled.then_some(None)
    })
    .await;
    if let Some(status) = ended {
        let log = daemon.log();
        assert_eq!(status.code(), Some(69), "{kib} KiB: {status}, {log}");
        assert!(log.contains("ulimit -v"), "{kib} KiB: {log}");
        return "refused".to_owned();
    }
    let mut client = daemon.client().await;
    let answer = generate(&mut client, request("Once upon a time", 300)).await;
    if let Some(status) = daemon.ended() {
        panic!(
            "{kib} KiB: signal {:?} for a request: {}",
            status.signal(),
            daemon.log()
        );
    }
    match answer {
        Ok(_) => "served".to_owned(),
        Err(error) => error.get_details_error_info().unwrap().reason,
    }
}

#[tokio::test]
async fn a_limit_of_address_space_is_an_error_with_a_reason_wherever_it_lies() {
    for prepared in [false, true] {
        let mut seen = Vec::new();
        for kib in [140, 170, 200, 230, 260, 290, 320, 360, 400, 500, 700] {
            seen.push(within(kib * 1000, prepared).await);
        }
        assert_eq!(seen.last().unwrap(), "served", "{prepared}: {seen:?}");
        assert!(
            seen.iter().any(|one| one != "served"),
            "{prepared}: {seen:?}"
        );
    }
}
