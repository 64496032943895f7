//! Configurations that cannot be, and pairs that could not.

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tonic::Code;
use tonic_types::StatusExt;

use crate::world::{COMMON, World, eventually, generate, pair, reason, seeded, usual, within};

#[tokio::test]
async fn whatever_is_wrong_everything_stays_as_it_was() {
    let world = World::start(&usual()).await;
    let mut client = world.client().await;
    let mut events = world.events().await;
    let expected = generate(&mut client, seeded("main", 3, 60)).await.unwrap();
    std::fs::write(world.path("no-model.gguf"), "no model").unwrap();
    let half = std::fs::read(world.path("b.gguf")).unwrap();
    std::fs::write(world.path("half.gguf"), &half[..half.len() / 2]).unwrap();
    for (config, cause, part) in [
        ("[pairs.main\n".to_owned(), "CONFIG", "config.toml:1"),
        (
            "[pairs.main]\ntraget = \"./a.gguf\"".to_owned(),
            "CONFIG",
            "did you mean \"target\"",
        ),
        (
            format!("{COMMON}{}", pair("main", "absent", "none")),
            "PAIR",
            "absent.gguf does not exist",
        ),
        (
            format!("{COMMON}{}", pair("main", "a", "absent")),
            "PAIR",
            "absent.gguf does not exist",
        ),
        (
            format!("{COMMON}{}", pair("main", "no-model", "none")),
            "PAIR",
            "no-model.gguf",
        ),
        (
            format!("{COMMON}{}", pair("main", "half", "none")),
            "PAIR",
            "half.gguf",
        ),
        (
            format!("{COMMON}{}", pair("main", "a", "exit")),
            "PAIR",
            "exit.gguf",
        ),
        (
            format!("{}context_length = 4000\n", usual())
                .replace("restore_after", "budget = \"900kB\"\nrestore_after"),
            "PAIR",
            "the budget is 900000",
        ),
        (within(900_000, &usual()), "MEMORY", "the budget is 900000"),
        (
            format!(
                "default_pair = \"main\"\n{}{}",
                pair("new", "absent", "none"),
                usual().replace("threads = 1", "threads = 2")
            ),
            "PAIR",
            "pair \"new\"",
        ),
    ] {
        let error = world.reload(&config).await.expect_err(part);
        assert_eq!(
            (error.code(), reason(&error).as_str()),
            (Code::FailedPrecondition, "RELOAD_FAILED"),
            "{error}"
        );
        assert!(error.message().contains(part), "{part} is not in {error}");
        assert_eq!(
            error.get_details_error_info().unwrap().metadata["cause"],
            cause
        );
        events
            .find(|_, event| match event {
                Event::ReloadFailed(failed) => failed.error.contains(part).then_some(()),
                _ => None,
            })
            .await;
        let status = world.status().await;
        assert!(status.reload.unwrap().error.contains(part));
        assert_eq!(status.pairs.len(), 1);
        let answer = generate(&mut client, seeded("main", 3, 60)).await.unwrap();
        assert_eq!(answer.token_ids, expected.token_ids);
        assert!(
            answer.complete.timings.unwrap().load.is_none(),
            "nothing was loaded again"
        );
    }
    world.reload(&usual()).await.unwrap();
    assert!(world.status().await.reload.unwrap().error.is_empty());
}

#[tokio::test]
async fn a_pair_that_failed_is_loaded_by_a_reload() {
    let world = World::start(&format!("{COMMON}{}", pair("main", "late", "none"))).await;
    std::fs::write(world.path("late.gguf"), "no model").unwrap();
    let mut client = world.client().await;
    let error = generate(&mut client, seeded("main", 1, 5))
        .await
        .unwrap_err();
    assert_eq!(reason(&error), "PAIR_NOT_LOADED");
    eventually("it says what is wrong with the file", async || {
        world.info("main").await.error.contains("late.gguf` ")
            || !world.info("main").await.error.contains("does not exist")
    })
    .await;
    std::fs::copy(world.path("a.gguf"), world.path("late.gguf")).unwrap();
    let answer = client
        .reload(v1::ReloadRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.retried, ["main"]);
    generate(&mut client, seeded("main", 1, 5)).await.unwrap();
}
