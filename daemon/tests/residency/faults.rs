//! Things that go wrong around a daemon while it loads and reloads.

use std::fs;

use tandem_proto::v1;
use tandem_proto::v1::Residency;

use crate::world::{
    COMMON, World, begin, eventually, finish, generate, pair, reason, seeded, usual,
};

#[tokio::test]
async fn prepared_weights_that_cannot_be_kept_cost_memory_and_no_request() {
    let world = World::start(&format!("{}preload = false\n", usual())).await;
    let mut client = world.client().await;
    // A file where the directory should be: as on a full disk, nothing can be written.
    fs::write(world.path("prepared"), "in the way").unwrap();
    let answer = generate(&mut client, seeded("main", 1, 40)).await.unwrap();
    let info = world.info("main").await;
    assert!(
        info.warnings
            .iter()
            .any(|warning| warning.contains("packed into memory")),
        "{info:?}"
    );
    assert_eq!(world.status().await.memory.unwrap().mapped_weights, 0);

    // With the disk in order again, another load maps them, and the text is the same.
    fs::remove_file(world.path("prepared")).unwrap();
    let config = format!(
        "{}preload = false\n",
        usual().replace("threads = 1", "threads = 2")
    );
    world.reload(&config).await.unwrap();
    assert!(world.status().await.memory.unwrap().mapped_weights > 0);
    let again = generate(&mut client, seeded("main", 1, 40)).await.unwrap();
    assert_eq!(again.token_ids, answer.token_ids);
}

#[tokio::test]
async fn a_model_that_is_removed_under_its_pair_does_no_harm_until_it_is_needed_again() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let expected = generate(&mut client, seeded("main", 1, 1500))
        .await
        .unwrap();
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    fs::remove_file(world.path("a.gguf")).unwrap();
    assert_eq!(finish(running).await.unwrap().token_ids, expected.token_ids);

    // Unloaded, it cannot come back, and says what is missing; once it is there again, it serves without more ado.
    let mut last = seeded("main", 1, 5);
    last.keep_alive = Some(prost_types::Duration::default());
    generate(&mut client, last).await.unwrap();
    eventually("it is unloaded", async || {
        world.info("main").await.residency() == Residency::Cold
    })
    .await;
    let error = generate(&mut client, seeded("main", 1, 5))
        .await
        .unwrap_err();
    assert_eq!(reason(&error), "PAIR_NOT_LOADED");
    assert!(error.message().contains("a.gguf does not exist"), "{error}");
    fs::copy(world.path("b.gguf"), world.path("a.gguf")).unwrap();
    generate(&mut client, seeded("main", 1, 5)).await.unwrap();
}

#[tokio::test]
async fn a_client_that_gives_up_does_not_call_a_reload_off() {
    let world = World::start(&usual()).await;
    world.configure(&format!("{COMMON}{}", pair("main", "b", "none")));
    let mut client = world.client().await;
    let call = tokio::spawn(async move { client.reload(v1::ReloadRequest {}).await });
    tokio::task::yield_now().await;
    call.abort();
    eventually("the file takes effect", async || {
        let target = world.info("main").await.target;
        target.unwrap().source.ends_with("b.gguf")
    })
    .await;
    generate(&mut world.client().await, seeded("main", 1, 5))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_flood_of_events_hides_nothing() {
    let world = World::start(&usual()).await;
    for number in 0..2000 {
        fs::write(world.path("noise"), number.to_string()).unwrap();
    }
    world.configure(&format!("{COMMON}{}", pair("main", "b", "none")));
    for number in 0..2000 {
        fs::write(world.path("noise"), number.to_string()).unwrap();
    }
    eventually("the file takes effect", async || {
        let target = world.info("main").await.target;
        target.unwrap().source.ends_with("b.gguf")
    })
    .await;
}

#[tokio::test]
async fn reloads_at_once_end_in_the_last_one() {
    let world = World::start(&usual()).await;
    let mut calls = Vec::new();
    for target in ["b", "a", "b", "a", "b"] {
        // Whole or not at all, as editors do it: the call before reads at any time.
        let text = format!("{COMMON}{}", pair("main", target, "none"));
        fs::write(world.path("config.new"), text).unwrap();
        fs::rename(world.path("config.new"), world.path("config.toml")).unwrap();
        let mut client = world.client().await;
        calls.push(tokio::spawn(async move {
            client.reload(v1::ReloadRequest {}).await
        }));
    }
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let info = world.info("main").await;
    assert!(info.target.unwrap().source.ends_with("b.gguf"));
    eventually("one load is left", async || {
        world.info("main").await.draining == 0
    })
    .await;
}
