//! Pairs that nobody asks for.

use std::time::{Duration, Instant};

use tandem_proto::v1::generate_response::Response;
use tandem_proto::v1::{GenerateRequest, Residency};
use tonic_health::pb::health_check_response::ServingStatus;

use crate::world::{World, begin, eventually, generate, seeded, usual};

/// How long a pair stays that nobody asks for.
const STAYS: Duration = Duration::from_millis(50);

async fn until_cold(world: &World) {
    eventually("it is unloaded", async || {
        world.info("main").await.residency() == Residency::Cold
    })
    .await;
}

fn keeping(seconds: f64, request: GenerateRequest) -> GenerateRequest {
    GenerateRequest {
        keep_alive: Some(prost_types::Duration {
            seconds: seconds as i64,
            nanos: (seconds.fract() * 1e9) as i32,
        }),
        ..request
    }
}

#[tokio::test]
async fn an_idle_pair_is_unloaded_and_loaded_again_by_the_next_request() {
    let config = format!("{}keep_alive = \"{}ms\"\n", usual(), STAYS.as_millis());
    let world = World::start(&config).await;
    let mut events = world.events().await;
    let mut client = world.client().await;
    let first = generate(&mut client, seeded("main", 1, 40)).await.unwrap();
    until_cold(&world).await;
    assert_eq!(events.unloaded().await.reason, "idle");
    assert_eq!(world.status().await.memory.unwrap().target_weights, 0);
    assert_eq!(
        world.health().await,
        ServingStatus::Serving,
        "the next request is served"
    );
    let totals = world.status().await.speculation.unwrap();
    assert!(totals.draft_tokens > 0, "what it did still counts");

    let again = generate(&mut client, seeded("main", 1, 40)).await.unwrap();
    assert_eq!(again.token_ids, first.token_ids);
    assert!(
        again.complete.timings.unwrap().load.is_some(),
        "it says that it loaded"
    );
    let begun = Instant::now();
    let mut running = begin(&mut client, seeded("main", 1, 3000)).await;
    // Longer than an idle pair stays, with tokens all the while.
    while begun.elapsed() < 4 * STAYS {
        let next = running.1.message().await.unwrap().expect("it goes on");
        match next.response.expect("something") {
            Response::Chunk(chunk) => running.0.extend(chunk.token_ids),
            Response::Complete(_) => running = begin(&mut client, seeded("main", 1, 3000)).await,
        }
    }
    assert_eq!(
        world.info("main").await.residency(),
        Residency::Warm,
        "not under a request"
    );
    drop(running);
    until_cold(&world).await;
}

#[tokio::test]
async fn a_request_says_how_long_its_pair_stays() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    assert_eq!(
        world.info("main").await.keep_alive.unwrap().seconds,
        -1,
        "for ever"
    );
    generate(&mut client, keeping(0.0, seeded("main", 1, 5)))
        .await
        .unwrap();
    until_cold(&world).await;
    generate(&mut client, keeping(-1.0, seeded("main", 1, 5)))
        .await
        .unwrap();
    assert_eq!(world.info("main").await.keep_alive.unwrap().seconds, -1);
    generate(&mut client, keeping(3600.0, seeded("main", 1, 5)))
        .await
        .unwrap();
    let info = world.info("main").await;
    assert_eq!(
        (info.residency(), info.keep_alive.unwrap().seconds),
        (Residency::Warm, 3600)
    );
}

#[tokio::test]
async fn without_preload_the_first_request_loads() {
    let config = format!("{}preload = false\n", usual());
    let world = World::start(&config).await;
    assert_eq!(world.info("main").await.residency(), Residency::Cold);
    assert_eq!(world.health().await, ServingStatus::Serving);
    let mut client = world.client().await;
    // All of these wait for the same load.
    let requests = (1..=4).map(|seed| {
        let mut client = client.clone();
        tokio::spawn(async move { generate(&mut client, seeded("main", seed, 10)).await })
    });
    for request in requests.collect::<Vec<_>>() {
        let timings = request.await.unwrap().unwrap().complete.timings.unwrap();
        assert!(timings.load.is_some());
    }
    let later = generate(&mut client, seeded("main", 1, 10)).await.unwrap();
    assert!(later.complete.timings.unwrap().load.is_none());
}

#[tokio::test]
async fn a_pair_that_is_never_kept_serves_requests_one_load_after_another() {
    let config = format!("{}keep_alive = \"never\"\n", usual());
    let world = World::start(&config).await;
    let mut client = world.client().await;
    let mut texts = Vec::new();
    for _ in 0..5 {
        let answer = generate(&mut client, seeded("main", 1, 20)).await.unwrap();
        texts.push(answer.token_ids);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1);
}
