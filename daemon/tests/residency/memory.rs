//! Memory that gets short: what is given up, in which order, and that it comes back.

use std::time::Duration;

use tandem_daemon::platform::{Platform as _, Pressure};
use tandem_proto::v1::watch_response::Event;
use tandem_proto::v1::{MemoryStage, Residency, Speculation};
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::world::{
    COMMON, World, begin, eventually, finish, generate, needed, pair, reason, seeded, usual, within,
};

async fn stage(world: &World) -> MemoryStage {
    world.status().await.memory_stage()
}

async fn until(world: &World, wanted: MemoryStage) {
    eventually(&format!("{wanted:?}"), async || {
        stage(world).await == wanted
    })
    .await;
}

/// Not long enough for the governor to go further by itself while a test looks.
fn patient(config: &str) -> String {
    config.replace("40ms", "600s")
}

#[tokio::test]
async fn a_draft_is_shed_in_mid_stream_and_comes_back_and_no_text_changes() {
    for draft in ["small", "self"] {
        let exit = match draft {
            "self" => "exit_adapter = \"./exit.gguf\"\n",
            _ => "",
        };
        let config = format!("{COMMON}{}{exit}", pair("main", "a", draft));
        let world = World::start(&config).await;
        let mut client = world.client().await;
        let expected = generate(&mut client, seeded("main", 2, 1500))
            .await
            .unwrap();
        assert!(expected.complete.speculation.unwrap().draft_tokens > 0);
        let weights = world.status().await.memory.unwrap().draft_weights;
        assert!(weights > 0);

        let mut events = world.events().await;
        let running = begin(&mut client, seeded("main", 2, 1500)).await;
        world.platform.set_pressure(Pressure::Critical);
        events.shed().await;
        let memory = world.status().await.memory.unwrap();
        assert_eq!(memory.draft_weights, 0, "{draft}");
        world.platform.set_pressure(Pressure::Normal);
        let answer = finish(running).await.unwrap();
        assert_eq!(answer.token_ids, expected.token_ids, "{draft}");
        events.restored().await;
        until(&world, MemoryStage::Free).await;
        eventually("the draft is back whole", async || {
            world.status().await.memory.unwrap().draft_weights == weights
        })
        .await;
        let answer = generate(&mut client, seeded("main", 2, 1500))
            .await
            .unwrap();
        assert_eq!(answer.token_ids, expected.token_ids, "{draft}");
        assert!(answer.complete.speculation.unwrap().draft_tokens > 0);
    }
}

#[tokio::test]
async fn only_what_the_footprint_shows_counts_as_freed() {
    let world = World::start(&patient(&usual())).await;
    let mut events = world.events().await;
    // The system goes on to charge as much as before: nothing was freed, whatever was dropped.
    world.platform.set_footprint(5_000_000);
    world.platform.set_pressure(Pressure::Critical);
    assert_eq!(events.shed().await.freed_bytes, 0);
}

#[tokio::test]
async fn a_warning_sheds_nothing() {
    let world = World::start(&patient(&usual())).await;
    world.platform.set_pressure(Pressure::Warn);
    until(&world, MemoryStage::Held).await;
    let mut client = world.client().await;
    let answer = generate(&mut client, seeded("main", 1, 40)).await.unwrap();
    assert!(answer.complete.speculation.unwrap().draft_tokens > 0);
    assert_eq!(world.health().await, ServingStatus::Serving);
}

#[tokio::test]
async fn while_held_requests_run_one_after_the_other() {
    let world = World::start(&patient(&usual())).await;
    world.platform.set_pressure(Pressure::Warn);
    until(&world, MemoryStage::Held).await;
    let mut client = world.client().await;
    let first = begin(&mut client, seeded("main", 1, 1500)).await;
    let second = tokio::spawn({
        let mut client = client.clone();
        async move { generate(&mut client, seeded("main", 2, 20)).await }
    });
    eventually("the second one waits", async || {
        let pair = &world.status().await.pairs[0];
        (pair.running, pair.waiting) == (1, 1)
    })
    .await;
    finish(first).await.unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test]
async fn then_work_is_refused_and_then_idle_pairs_go() {
    let config = format!(
        "default_pair = \"main\"\n{}{}",
        usual(),
        pair("second", "b", "none")
    );
    let world = World::start(&config).await;
    let mut client = world.client().await;
    let mut events = world.events().await;
    let expected = generate(&mut client, seeded("main", 1, 3000))
        .await
        .unwrap();
    let running = begin(&mut client, seeded("main", 1, 3000)).await;
    world.platform.set_pressure(Pressure::Critical);
    until(&world, MemoryStage::Unloaded).await;
    assert_eq!(world.health().await, ServingStatus::NotServing);
    let refused = generate(&mut client, seeded("main", 1, 5))
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::ResourceExhausted, "MEMORY_SHORT")
    );
    let unloaded = events.unloaded().await;
    assert_eq!(unloaded.reason, "memory");
    // Who runs goes on.
    assert_eq!(finish(running).await.unwrap().token_ids, expected.token_ids);
    eventually("both are unloaded", async || {
        let main = world.info("main").await.residency();
        let second = world.info("second").await.residency();
        (main, second) == (Residency::Cold, Residency::Cold)
    })
    .await;

    world.platform.set_pressure(Pressure::Normal);
    until(&world, MemoryStage::Free).await;
    let again = generate(&mut client, seeded("main", 1, 3000))
        .await
        .unwrap();
    assert_eq!(again.token_ids, expected.token_ids);
    assert!(again.complete.timings.unwrap().load.is_some());
    assert_eq!(world.health().await, ServingStatus::Serving);
}

#[tokio::test]
async fn what_is_loaded_while_drafts_are_shed_has_none_until_they_are_back() {
    let config = patient(&format!("{}keep_alive = \"never\"\n", usual()));
    let world = World::start(&config).await;
    let mut client = world.client().await;
    // The own footprint is over the budget: that sheds, and goes no further.
    world.platform.set_footprint(9_000_000_000);
    let expected = generate(&mut client, seeded("main", 1, 60)).await.unwrap();
    until(&world, MemoryStage::Shed).await;
    let plain = generate(&mut client, seeded("main", 1, 60)).await.unwrap();
    assert_eq!(plain.token_ids, expected.token_ids);
    let did = plain.complete.speculation.unwrap();
    let why = did.off_reason.clone() + &did.plain_reason;
    assert!(why.contains("memory is short"), "{did:?}");
    let required = tandem_proto::v1::GenerateRequest {
        speculation: Speculation::Required.into(),
        ..seeded("main", 1, 5)
    };
    let error = generate(&mut client, required).await.unwrap_err();
    assert_eq!(reason(&error), "SPECULATION_UNAVAILABLE");
    let info = world.info("main").await;
    assert!(info.draft.unwrap().source.ends_with("small.gguf"));
}

#[tokio::test]
async fn a_draft_that_cannot_come_back_stays_away_and_the_pair_serves() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let expected = generate(&mut client, seeded("main", 1, 60)).await.unwrap();
    let mut events = world.events().await;
    world.platform.set_pressure(Pressure::Critical);
    events.shed().await;
    std::fs::remove_file(world.path("small.gguf")).unwrap();
    world.platform.set_pressure(Pressure::Normal);
    until(&world, MemoryStage::Free).await;
    // Nothing is hoped for: whether it was tried by now or is tried later, the pair serves.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer = generate(&mut client, seeded("main", 1, 60)).await.unwrap();
    assert_eq!(answer.token_ids, expected.token_ids);
    let did = answer.complete.speculation.unwrap();
    assert_ne!(did.off_reason.clone() + &did.plain_reason, "", "{did:?}");
}

#[tokio::test]
async fn a_request_that_cannot_fit_is_refused_at_once_with_numbers() {
    let config = format!("{COMMON}{}", pair("main", "a", "none"));
    let config = within(needed(&config).await, &config);
    let world = World::start(&config).await;
    let mut client = world.client().await;
    // Lookup takes some as well, which a whole context does not have room for.
    let error = generate(&mut client, seeded("main", 1, 4000))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), reason(&error).as_str()),
        (Code::ResourceExhausted, "CACHE_TOO_LARGE")
    );
    generate(&mut client, seeded("main", 1, 100)).await.unwrap();
}

#[tokio::test]
async fn the_system_stays_awake_while_it_generates() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    assert_eq!(world.platform.awake(), 0);
    let running = begin(&mut client, seeded("main", 1, 2000)).await;
    eventually("it is kept awake", async || world.platform.awake() == 1).await;
    finish(running).await.unwrap();
    eventually("it may sleep", async || world.platform.awake() == 0).await;
}

#[tokio::test]
async fn changes_are_told() {
    let world = World::start(&patient(&usual())).await;
    let mut events = world.events().await;
    world.platform.set_pressure(Pressure::Warn);
    let told = events
        .find(|pair, event| match event {
            Event::Memory(memory) => Some((pair.to_owned(), memory)),
            _ => None,
        })
        .await;
    assert_eq!(told.0, "");
    assert_eq!(told.1.stage(), MemoryStage::Held);
    assert_eq!((told.1.footprint, told.1.budget), (7, 6_000_000_000));
}

#[tokio::test]
async fn what_others_give_back_meanwhile_is_not_asked_for_to_come_back() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    for _ in 0..5 {
        world.platform.set_footprint(9_000_000_000);
        // Something of this may come while the draft is being shed, and then looks as if the draft had been that large.
        let (answer, ()) = tokio::join!(generate(&mut client, seeded("main", 1, 100)), async {
            tokio::time::sleep(Duration::from_millis(15)).await;
            world.platform.set_footprint(7);
        });
        answer.unwrap();
        until(&world, MemoryStage::Free).await;
    }
}

#[tokio::test]
async fn memory_that_is_free_is_given_back_before_it_counts_and_when_the_last_request_ends() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let before = world.platform.footprint().unwrap();
    // More than the budget, all of it left over.
    world.platform.set_kept(100_000_000_000);
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    eventually("it is given back", async || {
        world.platform.footprint().unwrap() == before
    })
    .await;
    world.platform.set_kept(1_000_000);
    finish(running).await.unwrap();
    eventually("the rest is given back", async || {
        world.platform.footprint().unwrap() == before
    })
    .await;
    let status = world.status().await;
    assert_eq!(status.memory_stage(), MemoryStage::Free);
    let info = world.info("main").await;
    assert_eq!(info.speculation_off_reason, "", "the draft was not shed");
}
