//! Idle is free: a daemon without requests uses no processor time.

use std::time::Duration;

use tandem_tests::eventually;
use tandem_tests::grpc::{generate, request, until_queued};
use tandem_tests::proc::cpu_time;
use tokio::time::sleep;

use crate::default_daemon;

/// Waits until what starting or a request leaves to do is done: no time passes between two looks.
async fn settled(pid: u32) -> Duration {
    eventually("a process that rests", async || {
        let before = cpu_time(pid);
        sleep(Duration::from_millis(300)).await;
        (cpu_time(pid) == before).then_some(before)
    })
    .await
}

#[tokio::test]
async fn an_idle_daemon_uses_no_cpu_before_and_after_work() {
    let daemon = default_daemon().await;
    let fresh = settled(daemon.pid()).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(
        cpu_time(daemon.pid()),
        fresh,
        "CPU time passed before any request"
    );

    let mut client = daemon.client().await;
    generate(&mut client, request("Hello", 16)).await.unwrap();
    until_queued(&mut client, 0, 0).await;
    let worked = settled(daemon.pid()).await;
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
