//! What is told to those who watch, and health.

use tandem_daemon::Signal;
use tandem_proto::v1::watch_response::Event;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::world::{COMMON, World, eventually, generate, pair, seeded, usual};

#[tokio::test]
async fn a_load_is_told_from_its_first_byte_to_its_last() {
    let config = format!("{}preload = false\n", usual());
    let world = World::start(&config).await;
    let mut events = world.events().await;
    generate(&mut world.client().await, seeded("main", 1, 5))
        .await
        .unwrap();
    let mut models = Vec::new();
    loop {
        match events.next().await.expect("the daemon goes on") {
            (pair, Event::Loading(load)) => {
                assert_eq!(pair, "main");
                assert!(load.done_bytes <= load.total_bytes);
                models.push(load.model);
            }
            (pair, Event::Ready(ready)) => {
                assert_eq!(pair, "main");
                assert!(ready.took.is_some());
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    models.dedup();
    assert_eq!(models, ["draft", "target"]);
}

#[tokio::test]
async fn watching_ends_with_the_daemon() {
    let world = World::start(&usual()).await;
    let mut events = world.events().await;
    world.signals.send(Signal::End).await.unwrap();
    while events.next().await.is_some() {}
    world.running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_told_and_shows_in_health_until_it_ends() {
    // So short that steps with a long prompt count as hanging.
    let config = format!("{}[server]\nhang_after = \"2ms\"\n", usual());
    let world = World::start(&config).await;
    let mut events = world.events().await;
    let mut client = world.client().await;
    let mut long = seeded("main", 1, 20);
    long.input = Some(tandem_proto::v1::generate_request::Input::Text(
        "The quick brown fox jumps over the lazy dog. ".repeat(80),
    ));
    let request = tokio::spawn(async move { generate(&mut client, long).await });
    let place = events
        .find(|pair, event| match event {
            Event::Hanging(hanging) => Some((pair.to_owned(), hanging.r#where)),
            _ => None,
        })
        .await;
    assert_eq!(place.0, "main");
    assert!(
        place.1.contains("step ") && place.1.contains("pair \"main\""),
        "{place:?}"
    );
    request.await.unwrap().unwrap();
    eventually("it goes on", async || {
        world.status().await.hanging.is_empty()
    })
    .await;
    eventually("it serves", async || {
        world.health().await == ServingStatus::Serving
    })
    .await;
}

#[tokio::test]
async fn health_follows_the_pair_that_is_the_default_one() {
    let two = |default: &str| {
        format!(
            "default_pair = \"{default}\"\n{COMMON}{}{}",
            pair("good", "a", "none"),
            pair("bad", "absent", "none")
        )
    };
    let world = World::start(&two("bad")).await;
    assert_eq!(world.health().await, ServingStatus::NotServing);
    // The other one's file is still missing, which is nothing new.
    let changes = world.reload(&two("good")).await.unwrap();
    assert!(changes.retried.is_empty());
    assert!(world.info("bad").await.error.contains("absent.gguf"));
    eventually("the good one is the default", async || {
        world.health().await == ServingStatus::Serving
    })
    .await;
}
