//! Idle is free.

use std::time::Duration;

use tandem_tests::grpc::{generate, request, until_queued};
use tandem_tests::proc::cpu_time;
use tokio::time::sleep;

use crate::default_daemon;

#[tokio::test]
async fn an_idle_daemon_uses_no_cpu_before_and_after_work() {
    let daemon = default_daemon().await;
    sleep(Duration::from_millis(500)).await; // what starting leaves to do
    let fresh = cpu_time(daemon.pid());
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        cpu_time(daemon.pid()),
        fresh,
        "CPU time passed before any request"
    );

    let mut client = daemon.client().await;
    generate(&mut client, request("Hello", 16)).await.unwrap();
    until_queued(&mut client, 0, 0).await;
    sleep(Duration::from_millis(500)).await;
    let worked = cpu_time(daemon.pid());
    assert!(
        worked > fresh,
        "sixteen tokens are work, or this tests nothing"
    );
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        cpu_time(daemon.pid()),
        worked,
        "CPU time passed after the last request"
    );
}
