//! Memory that requests and loads leave behind.

use std::time::Duration;

use tandem_proto::v1::MemoryStage;
use tandem_tests::grpc::{self, Client, generate, only_pair, request, status};
use tandem_tests::{Daemon, Home, eventually, models};

use super::{descriptors, footprint_mb};
use crate::home;

/// Weights in memory, a budget that is tight for them, and no long patience.
fn tight() -> Home {
    let files = models::default_pair();
    home()
        .config(
            "[engine]\nprepared = false\n[memory]\nbudget = \"190MB\"\nrestore_after = \"200ms\"",
        )
        .pair("only", &files.target, &files.draft)
        .config("context_length = 1024")
}

/// Eight clients with eight small requests each.
async fn burst(daemon: &Daemon) {
    let clients = (0..8).map(|number| {
        let socket = daemon.home().socket();
        tokio::spawn(async move {
            let mut client: Client = grpc::client(&socket).await;
            for round in 0..8 {
                let prompt = format!("Story {number} of day {round}: once upon a time");
                generate(&mut client, request(&prompt, 16)).await.unwrap();
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// Waits until the daemon takes at most a tenth more than `before`, in MB.
async fn back_to(before: f64, daemon: &Daemon) {
    let mut now = before;
    eventually(&format!("a footprint of {before} MB"), async || {
        now = footprint_mb(daemon);
        (now <= before * 1.1).then_some(())
    })
    .await;
}

/// What the daemon takes, in MB, once it gives nothing more back for half a second.
async fn at_rest(daemon: &Daemon) -> f64 {
    let (mut least, mut unchanged) = (f64::INFINITY, 0);
    while unchanged < 10 {
        let now = footprint_mb(daemon);
        unchanged = if now < least { 0 } else { unchanged + 1 };
        least = least.min(now);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    least
}

#[tokio::test]
async fn what_bursts_of_small_requests_leave_behind_goes_back_to_the_system() {
    let daemon = home().start().await;
    generate(&mut daemon.client().await, request("Hello", 16))
        .await
        .unwrap();
    // Buffers that a batch of eight needs are kept for the next. On a busy machine not every burst has all eight in one step.
    let mut before = 0.0_f64;
    for _ in 0..4 {
        burst(&daemon).await;
        before = before.max(at_rest(&daemon).await);
    }
    for _ in 0..3 {
        burst(&daemon).await;
        back_to(before, &daemon).await;
    }
    assert!(before < 60.0, "{before} MB at rest");
}

#[tokio::test]
async fn within_a_tight_budget_the_draft_is_back_after_the_burst() {
    let daemon = tight().start().await;
    let mut client = daemon.client().await;
    for _ in 0..3 {
        burst(&daemon).await;
        eventually("nothing is given up any more", async || {
            let status = status(&mut client.clone()).await;
            let drafts = status.memory?.draft_weights > 0;
            (status.memory_stage() == MemoryStage::Free && drafts).then_some(())
        })
        .await;
    }
    let info = only_pair(&mut client).await.info.unwrap();
    assert_eq!(info.speculation_off_reason, "");
}

#[tokio::test]
async fn fifty_loads_leave_neither_memory_nor_descriptors_behind() {
    let draft = &models::default_pair().draft;
    let home = home().pair("only", draft, "none").config("preload = false");
    let daemon = home.start().await;
    let mut client = daemon.client().await;
    let (mut memory, mut open) = (0.0, 0);
    for round in 0..50 {
        let mut last = request("Hello", 4);
        last.keep_alive = Some(prost_types::Duration::default());
        generate(&mut client, last).await.unwrap();
        grpc::until_cold(&client).await;
        if round == 9 {
            (memory, open) = (footprint_mb(&daemon), descriptors(&daemon));
        }
    }
    back_to(memory.max(10.0), &daemon).await;
    assert_eq!(descriptors(&daemon), open);
}
