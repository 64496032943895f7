//! Reloads: what they change, what they refuse, and that streams never notice.

use tandem_daemon::Signal;
use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::task::JoinHandle;
use tonic::Code;

use crate::world::{
    COMMON, World, begin, eventually, finish, generate, needed, pair, reason, seeded, usual, within,
};

/// The text of a target for a seed, without anything going on.
async fn undisturbed(target: &str, seed: u64, tokens: u32) -> Vec<u32> {
    let config = format!("{COMMON}{}", pair("main", target, "none"));
    let world = World::start(&config).await;
    let answer = generate(&mut world.client().await, seeded("main", seed, tokens)).await;
    answer.unwrap().token_ids
}

#[tokio::test]
async fn a_stream_ends_on_the_pair_it_began_with_and_the_next_uses_the_new_one() {
    let (old, new) = (
        undisturbed("a", 1, 1500).await,
        undisturbed("b", 1, 50).await,
    );
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    let mut events = world.events().await;

    let changes = world
        .reload(&format!("{COMMON}{}", pair("main", "b", "none")))
        .await
        .unwrap();
    assert_eq!(changes.changed, ["main"]);
    let after = generate(&mut client, seeded("main", 1, 50)).await.unwrap();
    assert_eq!(after.token_ids, new, "the new target");
    assert!(
        after.complete.timings.unwrap().load.is_none(),
        "it did not wait"
    );
    assert_eq!(finish(running).await.unwrap().token_ids, old, "the old one");
    let unloaded = events.unloaded().await;
    assert_eq!(unloaded.reason, "replaced");
    eventually("nothing is left of the old load", async || {
        world.info("main").await.draining == 0
    })
    .await;
    let info = world.info("main").await;
    assert_eq!(info.residency(), v1::Residency::Warm);
    assert!(info.target.unwrap().source.ends_with("b.gguf"));
    assert!(world.status().await.reload.unwrap().error.is_empty());
}

#[tokio::test]
async fn another_draft_changes_no_text() {
    let expected = undisturbed("a", 5, 400).await;
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    for draft in ["none", "small", "self", "small"] {
        let running = begin(&mut client, seeded("main", 5, 400)).await;
        let config = format!("{COMMON}{}", pair("main", "a", draft));
        world.reload(&config).await.unwrap();
        let after = generate(&mut client, seeded("main", 5, 400)).await.unwrap();
        assert_eq!(after.token_ids, expected, "{draft}");
        assert_eq!(
            finish(running).await.unwrap().token_ids,
            expected,
            "{draft}"
        );
    }
}

#[tokio::test]
async fn pairs_come_and_go() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let two = format!(
        "default_pair = \"main\"\n{}{}",
        usual(),
        pair("second", "b", "none")
    );
    let changes = world.reload(&two).await.unwrap();
    assert_eq!(
        (changes.added, changes.changed.len()),
        (vec!["second".to_owned()], 0)
    );
    let running = begin(&mut client, seeded("second", 1, 1500)).await;

    // With the pair that was the default one gone, the one that is left is it.
    let one = format!("{COMMON}{}", pair("second", "b", "none"));
    let changes = world.reload(&one).await.unwrap();
    assert_eq!(changes.removed, ["main"]);
    let answer = generate(&mut client, seeded("", 1, 10)).await.unwrap();
    assert_eq!(answer.complete.pair, "second");
    let gone = generate(&mut client, seeded("main", 1, 10))
        .await
        .unwrap_err();
    assert_eq!(
        (gone.code(), reason(&gone).as_str()),
        (Code::NotFound, "UNKNOWN_PAIR")
    );
    assert_eq!(finish(running).await.unwrap().token_ids.len(), 1500);

    let changes = world.reload(&usual()).await.unwrap();
    assert_eq!(
        (changes.added, changes.removed),
        (vec!["main".to_owned()], vec!["second".to_owned()])
    );
    generate(&mut client, seeded("main", 1, 10)).await.unwrap();
}

/// A pair with this target, and a budget that has room for one such pair.
async fn tight(target: &str) -> String {
    let config = |target| {
        let lookup = "[speculation]\nlookup = false\n";
        format!(
            "{COMMON}{lookup}{}context_length = 2048\n",
            pair("main", target, "none")
        )
    };
    within(needed(&config("a")).await, &config(target))
}

/// Configures what does not fit beside the old load, asks for it, and waits until that drains.
async fn begin_replacing(
    world: &World,
    config: &str,
) -> JoinHandle<Result<tonic::Response<v1::ReloadResponse>, tonic::Status>> {
    let (mut events, mut client) = (world.events().await, world.client().await);
    world.configure(config);
    let reload = tokio::spawn(async move { client.reload(v1::ReloadRequest {}).await });
    events
        .find(|_, event| matches!(event, Event::Draining(_)).then_some(()))
        .await;
    reload
}

#[tokio::test]
async fn where_both_do_not_fit_the_old_one_drains_first_and_requests_wait() {
    let (old, new) = (
        undisturbed("a", 1, 1500).await,
        undisturbed("b", 1, 50).await,
    );
    let world = World::start(&tight("a").await).await;
    let mut client = world.client().await;
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    let reload = begin_replacing(&world, &tight("b").await).await;
    // This one comes while the old load is draining.
    let waiting = generate(&mut client, seeded("main", 1, 50)).await.unwrap();
    assert_eq!(waiting.token_ids, new);
    assert!(
        waiting.complete.timings.unwrap().load.is_some(),
        "it waited for the load"
    );
    assert_eq!(finish(running).await.unwrap().token_ids, old);
    reload.await.unwrap().unwrap();
}

#[tokio::test]
async fn where_the_new_one_fails_after_all_the_old_one_is_loaded_again() {
    let expected = undisturbed("a", 1, 50).await;
    let world = World::start(&tight("a").await).await;
    let mut client = world.client().await;
    // Its header is sound, so that it is found out only when the old load is gone.
    let whole = std::fs::read(world.path("b.gguf")).unwrap();
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    let reload = begin_replacing(&world, &tight("b").await).await;
    std::fs::write(world.path("b.gguf"), &whole[..whole.len() / 2]).unwrap();
    let waiting = generate(&mut client, seeded("main", 1, 50)).await.unwrap();
    assert_eq!(waiting.token_ids, expected, "served by the old one");
    finish(running).await.unwrap();
    let error = reload.await.unwrap().unwrap_err();
    assert_eq!(reason(&error), "RELOAD_FAILED");
    assert!(error.message().contains("b.gguf"), "{error}");
    let info = world.info("main").await;
    assert_eq!(info.residency(), v1::Residency::Warm);
    assert!(info.target.unwrap().source.ends_with("a.gguf"));
}

#[tokio::test]
async fn a_signal_reads_the_file_again() {
    let world = World::start(&usual()).await;
    let mut events = world.events().await;
    world.signals.send(Signal::Reload).await.unwrap();
    let changes = events
        .find(|_, event| match event {
            Event::Reloaded(changes) => Some(changes),
            _ => None,
        })
        .await;
    assert_eq!(changes, v1::ReloadResponse::default());
    generate(&mut world.client().await, seeded("main", 1, 5))
        .await
        .unwrap();
}

#[tokio::test]
async fn limits_take_effect_and_what_cannot_says_so() {
    let world = World::start(&usual()).await;
    let config = format!(
        "{}[server]\nmax_concurrent = 1\nmax_queue = 0\nmax_message_bytes = 65536\n",
        usual()
    );
    let changes = world.reload(&config).await.unwrap();
    assert_eq!(changes.restart_needed, ["server.max_message_bytes"]);
    assert_eq!(
        changes.changed,
        ["main"],
        "its engine takes one request at a time"
    );
    let mut client = world.client().await;
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    let full = generate(&mut client, seeded("main", 1, 5))
        .await
        .unwrap_err();
    assert_eq!(reason(&full), "QUEUE_FULL");
    finish(running).await.unwrap();
    assert_eq!(world.status().await.pairs[0].queue_capacity, 0);
}
