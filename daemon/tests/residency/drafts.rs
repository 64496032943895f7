//! Drafts that fail: streams go on plainly, and the draft comes back by itself, or by a reload.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::world::{World, begin, finish, generate, pair, seeded, usual};

/// The prepared file of the draft: the smallest of all.
fn prepared_draft(world: &World) -> PathBuf {
    let entries = fs::read_dir(world.path("prepared")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "prepared"));
    files
        .min_by_key(|path| fs::metadata(path).unwrap().len())
        .unwrap()
}

fn cut(world: &World) {
    let file = File::options()
        .write(true)
        .open(prepared_draft(world))
        .unwrap();
    file.set_len(0).unwrap();
}

async fn off(world: &World) -> String {
    world.info("main").await.speculation_off_reason
}

#[tokio::test]
async fn a_draft_that_fails_comes_back_while_the_stream_goes_on() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let expected = generate(&mut client, seeded("main", 1, 1500))
        .await
        .unwrap();
    let mut events = world.events().await;
    let running = begin(&mut client, seeded("main", 1, 1500)).await;
    cut(&world);
    events.restored().await;
    assert_eq!(finish(running).await.unwrap().token_ids, expected.token_ids);
    assert_eq!(off(&world).await, "");
    let again = generate(&mut client, seeded("main", 1, 1500))
        .await
        .unwrap();
    assert_eq!(again.token_ids, expected.token_ids);
    assert!(again.complete.speculation.unwrap().draft_tokens > 0);
}

#[tokio::test]
async fn a_draft_that_cannot_come_back_by_itself_comes_by_a_reload() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let expected = generate(&mut client, seeded("main", 1, 200)).await.unwrap();
    fs::rename(world.path("small.gguf"), world.path("aside")).unwrap();
    cut(&world);
    let plain = generate(&mut client, seeded("main", 1, 200)).await.unwrap();
    assert_eq!(plain.token_ids, expected.token_ids);
    assert!(
        off(&world).await.contains("failed"),
        "{}",
        off(&world).await
    );

    // The rest of the configuration takes effect in the meantime.
    let two = format!(
        "default_pair = \"main\"\n{}{}",
        usual(),
        pair("second", "b", "none")
    );
    let changes = world.reload(&two).await.unwrap();
    assert_eq!(changes.added, ["second"]);
    let [failed] = &changes.failed[..] else {
        panic!("one draft failed: {changes:?}");
    };
    assert_eq!(failed.pair, "main");
    assert!(
        failed.error.contains("small.gguf does not exist"),
        "{}",
        failed.error
    );

    fs::rename(world.path("aside"), world.path("small.gguf")).unwrap();
    let changes = world.reload(&two).await.unwrap();
    assert_eq!(
        (changes.retried.len(), changes.failed.len()),
        (1, 0),
        "{changes:?}"
    );
    assert_eq!(off(&world).await, "");
    let again = generate(&mut client, seeded("main", 1, 200)).await.unwrap();
    assert_eq!(again.token_ids, expected.token_ids);
    assert!(again.complete.speculation.unwrap().draft_tokens > 0);
}
