//! The engine thread with a real engine: what streams get, and what happens when something goes wrong.

use std::sync::atomic::Ordering;

use tandem_engine::FinishReason;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::rig::{Rig, eventually, read};
use super::tiny;
use crate::replies::Reply;
use crate::residency::PairState;

fn reason(status: &Status) -> String {
    status
        .get_details_error_info()
        .expect("every error has one")
        .reason
}

#[tokio::test]
async fn a_request_streams_to_its_end_and_leaves_nothing() {
    let rig = Rig::new(vec![|| {}], 4).await;
    let (tokens, end) = read(rig.submit(0, vec![1, 2, 3], 20)).await;
    let end = end.unwrap();
    assert_eq!((tokens.len(), end.reason), (20, FinishReason::Length));
    assert_eq!(
        (end.stats.prompt_tokens, end.stats.completion_tokens),
        (3, 20)
    );
    assert!(
        end.times.time_to_first_token <= end.times.total
            && end.times.queue <= end.times.time_to_first_token
    );
    assert_eq!(
        rig.pairs[0].reserved(),
        0,
        "there is room again before the client hears"
    );
    let readings = rig.pairs[0].readings();
    assert_eq!(
        (
            readings.running,
            readings.waiting,
            readings.memory.target_kv
        ),
        (0, 0, 0)
    );
    assert_eq!(rig.totals.completed.load(Ordering::Relaxed), 1);
    assert_eq!(rig.totals.prompt_tokens.load(Ordering::Relaxed), 3);
    assert_eq!(rig.totals.completion_tokens.load(Ordering::Relaxed), 20);
    assert!(rig.totals.steps.load(Ordering::Relaxed) >= 20);
}

#[tokio::test]
async fn a_stalled_reader_holds_nobody_up_and_loses_nothing() {
    let rig = Rig::new(vec![|| {}], 4).await;
    let stalled = rig.submit(0, vec![1, 2, 3], 300);
    let expected = read(rig.submit(0, vec![1, 2, 3], 300)).await;
    assert_eq!(expected.0.len(), 300);
    rig.settled();
    let (tokens, end) = read(stalled).await;
    assert_eq!(tokens, expected.0, "greedy, so the same");
    assert_eq!(end.unwrap().reason, FinishReason::Length);
}

#[tokio::test]
async fn a_stream_that_is_dropped_costs_no_further_step() {
    let (rig, go) = Rig::paced(4).await;
    let mut replies = rig.submit(0, vec![1], 1000);
    for _ in 0..3 {
        go.send(()).unwrap();
        assert!(matches!(replies.next().await, Some(Reply::Chunk(_))));
    }
    drop(replies);
    // The thread may already wait inside the next step; that one ends, and no other begins.
    for _ in 0..10 {
        go.send(()).unwrap();
    }
    rig.settled();
    assert!(rig.totals.steps.load(Ordering::Relaxed) <= 4);
    assert_eq!(rig.totals.cancelled.load(Ordering::Relaxed), 1);
    assert_eq!(rig.pairs[0].readings().memory.target_kv, 0);
}

#[tokio::test]
async fn a_waiting_request_is_cancelled_and_the_running_one_goes_on() {
    let (rig, go) = Rig::paced(1).await;
    let running = rig.submit(0, vec![1], 5);
    let waiting = rig.submit(0, vec![2], 5);
    go.send(()).unwrap();
    eventually(|| {
        (
            rig.pairs[0].readings().running,
            rig.pairs[0].readings().waiting,
        ) == (1, 1)
    });
    drop(waiting);
    for _ in 0..10 {
        go.send(()).unwrap();
    }
    let (tokens, end) = read(running).await;
    assert_eq!(
        (tokens.len(), end.unwrap().reason),
        (5, FinishReason::Length)
    );
    rig.settled();
    assert_eq!(rig.totals.cancelled.load(Ordering::Relaxed), 1);
    assert_eq!(
        rig.totals.steps.load(Ordering::Relaxed),
        5,
        "the one that waited never ran"
    );
}

#[tokio::test]
async fn a_panic_ends_its_pair_with_a_reason_and_no_other() {
    let fault = |at: u32| {
        let mut steps = 0;
        move || {
            steps += 1;
            assert!(steps != at, "a fault on purpose");
        }
    };
    let rig = Rig::new(vec![fault(4), fault(0)], 4).await;
    let (faulty, sound) = (rig.submit(0, vec![1], 50), rig.submit(1, vec![1], 50));
    let (tokens, end) = read(faulty).await;
    let status = end.unwrap_err();
    assert_eq!(
        (tokens.len(), status.code(), reason(&status).as_str()),
        (3, Code::Internal, "ENGINE_PANICKED")
    );
    let (tokens, end) = read(sound).await;
    assert_eq!(
        (tokens.len(), end.unwrap().reason),
        (50, FinishReason::Length)
    );

    let PairState::Cold(Some(failure)) = rig.pairs[0].state() else {
        panic!("it is lost")
    };
    assert!(!failure.retry, "it never brought a request to its end");
    assert!(failure.error.contains("tandem reload"), "{failure:?}");
    assert!(rig.residents[0].is_lost() && !rig.residents[1].is_lost());
    assert!(matches!(rig.pairs[1].state(), PairState::Warm(_)));
    let (_, end) = read(rig.submit(0, vec![1], 5)).await;
    assert_eq!(end.unwrap_err().code(), Code::Internal);
    rig.settled();
}

#[tokio::test]
async fn what_the_engine_refuses_comes_back_with_its_reason() {
    let rig = Rig::new(vec![|| {}], 4).await;
    let refused = async |replies| read(replies).await.1.unwrap_err();

    let status = refused(rig.submit(0, vec![1; tiny::CONTEXT], 1)).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::InvalidArgument, "CONTEXT_OVERFLOW")
    );
    let metadata = status.get_details_error_info().unwrap().metadata;
    assert_eq!(metadata["prompt_tokens"], tiny::CONTEXT.to_string());
    assert_eq!(metadata["context_length"], tiny::CONTEXT.to_string());

    let status = refused(rig.submit(0, vec![tiny::VOCABULARY as u32], 1)).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::InvalidArgument, "INVALID_FIELD")
    );

    let status = refused(rig.submit_with(0, vec![1], 1, true)).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::FailedPrecondition, "SPECULATION_UNAVAILABLE")
    );

    rig.settled();
    assert_eq!(rig.totals.failed.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn stopping_ends_streams_with_an_error() {
    let (rig, go) = Rig::paced(4).await;
    let replies = rig.submit(0, vec![1], 1000);
    rig.worker.stop();
    go.send(()).unwrap();
    let (_, end) = read(replies).await;
    assert_eq!(end.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn the_system_is_kept_awake_while_a_request_runs() {
    let (rig, go) = Rig::paced(4).await;
    assert_eq!(rig.platform.awake(), 0);
    let mut replies = rig.submit(0, vec![1], 2);
    go.send(()).unwrap();
    assert!(matches!(replies.next().await, Some(Reply::Chunk(_))));
    assert_eq!(rig.platform.awake(), 1, "one guard, whatever the requests");
    go.send(()).unwrap();
    read(replies).await.1.unwrap();
    eventually(|| rig.platform.awake() == 0);
}

#[tokio::test]
async fn an_engine_that_had_worked_is_tried_again() {
    let mut steps = 0;
    let fault = move || {
        steps += 1;
        assert!(steps < 6, "a fault on purpose");
    };
    let rig = Rig::new(vec![fault], 4).await;
    assert_eq!(read(rig.submit(0, vec![1], 3)).await.0.len(), 3);
    let (_, end) = read(rig.submit(0, vec![1], 50)).await;
    assert_eq!(reason(&end.unwrap_err()), "ENGINE_PANICKED");
    assert!(matches!(rig.pairs[0].state(), PairState::Cold(Some(failure)) if failure.retry));
}

#[tokio::test]
async fn what_is_taken_out_leaves_the_others_alone() {
    let (rig, go) = Rig::paced(4).await;
    let replies = rig.submit(0, vec![1], 1000);
    let removed = tokio::spawn({
        let (worker, lane) = (rig.worker.clone(), rig.residents[0].lane);
        async move { worker.remove(lane).await.is_some() }
    });
    // The order is on its way before the step in progress ends.
    tokio::task::yield_now().await;
    go.send(()).unwrap();
    assert!(removed.await.unwrap(), "the engine comes back");
    let (_, end) = read(replies).await;
    assert_eq!(
        end.unwrap_err().code(),
        Code::Internal,
        "nobody waits for it"
    );
    assert!(rig.worker.remove(rig.residents[0].lane).await.is_none());
    let (_, end) = read(rig.submit(0, vec![1], 5)).await;
    assert_eq!(end.unwrap_err().code(), Code::Internal);
    assert!(
        rig.worker
            .shed(rig.residents[0].lane, "x".into())
            .await
            .is_none()
    );
    rig.worker.trim().await;
}

#[tokio::test]
async fn who_hangs_is_named_until_it_goes_on() {
    let (rig, go) = Rig::paced(4).await;
    let replies = rig.submit(0, vec![1], 2);
    let progress = rig.worker.progress();
    let limit = std::time::Duration::ZERO;
    let hanging = || progress.hanging(std::time::Instant::now(), limit);
    // Without an item of the channel, the first step does not end.
    eventually(|| hanging().is_some_and(|doing| doing.to_string().starts_with("step 1 of")));
    let doing = hanging().expect("it still does");
    assert_eq!(doing.pair(), "pair0");
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    read(replies).await.1.unwrap();
    eventually(|| hanging().is_none());
}
