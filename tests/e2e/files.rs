//! Model files with something wrong in them: the daemon stays, says what is wrong, and serves its other pairs.

use std::path::{Path, PathBuf};

use tandem_proto::v1::{GenerateRequest, ListPairsRequest, PairInfo, Speculation};
use tandem_tests::grpc::{Client, generate, request, speculating};
use tandem_tests::{Daemon, Home, eventually, gguf, models};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::home;

/// Starts a daemon with a good pair, the default, and one that is called "bad".
async fn beside_a_good_pair(home: Home, target: &Path, draft: &Path) -> Daemon {
    let good = models::default_pair();
    home.config("default_pair = \"good\"")
        .pair("good", &good.target, &good.draft)
        .pair("bad", target, draft)
        .start()
        .await
}

/// Waits until the pair "bad" has been tried, and returns what the daemon says about it.
async fn verdict(client: &mut Client) -> PairInfo {
    eventually("a verdict on the bad pair", || {
        let mut client = client.clone();
        async move {
            let pairs = client
                .list_pairs(ListPairsRequest {})
                .await
                .unwrap()
                .into_inner()
                .pairs;
            let bad = pairs
                .into_iter()
                .find(|pair| pair.name == "bad")
                .expect("it is configured");
            (!bad.error.is_empty() || !bad.speculation_off_reason.is_empty()).then_some(bad)
        }
    })
    .await
}

/// Checks that a target is refused with its path and this word, and that the other pair serves.
async fn refused(make: impl FnOnce(&Path) -> PathBuf, word: &str) {
    let home = home();
    let target = make(home.path());
    let daemon = beside_a_good_pair(home, &target, Path::new("none")).await;
    let mut client = daemon.client().await;
    let to_bad = GenerateRequest {
        pair: "bad".into(),
        ..request("Hello", 2)
    };
    let status = generate(&mut client, to_bad)
        .await
        .expect_err("the file is not usable");
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    assert_eq!(
        status.get_details_error_info().unwrap().reason,
        "PAIR_NOT_LOADED"
    );
    for part in [target.to_str().unwrap(), word] {
        assert!(
            status.message().contains(part),
            "{part:?} is missing in: {}",
            status.message()
        );
    }
    assert!(verdict(&mut client).await.error.contains(word));
    generate(&mut client, request("Hello", 2))
        .await
        .expect("the good pair serves");
}

#[tokio::test]
async fn a_target_cut_short_in_its_header() {
    refused(
        |to| gguf::truncated(&models::default_pair().target, 5_000, to.join("short.gguf")),
        "short.gguf",
    )
    .await;
}

#[tokio::test]
async fn a_target_cut_short_in_its_weights() {
    refused(
        |to| {
            gguf::truncated(
                &models::default_pair().target,
                50_000_000,
                to.join("half.gguf"),
            )
        },
        "bytes",
    )
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_model() {
    let write = |to: &Path| {
        let path = to.join("notes.gguf");
        std::fs::write(
            &path,
            "Dear diary, today I wrote no model at all.\n".repeat(100),
        )
        .unwrap();
        path
    };
    refused(write, "GGUF").await;
}

#[tokio::test]
async fn a_target_that_is_not_there() {
    refused(|to| to.join("gone.gguf"), "gone.gguf").await;
}

#[tokio::test]
async fn counts_that_no_file_can_hold() {
    let long_key = u64::MAX.to_le_bytes();
    // Key "k", an array (9) of strings (8) with 2^60 elements.
    let mut long_array = 1u64.to_le_bytes().to_vec();
    long_array.extend([b'k', 9, 0, 0, 0, 8, 0, 0, 0]);
    long_array.extend((1u64 << 60).to_le_bytes());
    for (tensors, entries, rest) in [
        (u64::MAX, 0, &[][..]),
        (1 << 60, 0, &[]),
        (0, 1 << 60, &[]),
        (1, 1, &long_key),
        (0, 1, &long_array),
    ] {
        refused(
            |to| gguf::header_only(tensors, entries, rest, to.join("absurd.gguf")),
            "absurd.gguf",
        )
        .await;
    }
}

#[tokio::test]
async fn a_draft_with_another_vocabulary_is_not_used() {
    let home = home();
    let good = models::default_pair();
    let draft = gguf::respelled(
        &good.draft,
        "<gh_stars>",
        "<gh_spars>",
        home.path().join("other.gguf"),
    );
    let daemon = beside_a_good_pair(home, &good.target, &draft).await;
    let mut client = daemon.client().await;
    let to = |pair: &str| GenerateRequest {
        pair: pair.into(),
        ..request("It is so because", 16)
    };

    let why = verdict(&mut client).await.speculation_off_reason;
    assert!(
        why.contains("<gh_stars>") && why.contains("<gh_spars>"),
        "the first mismatch is named: {why}"
    );
    let bad = generate(&mut client, to("bad"))
        .await
        .expect("the target alone serves");
    let good = generate(&mut client, to("good")).await.unwrap();
    assert_eq!(bad.token_ids, good.token_ids);
    let speculation = bad.complete.speculation.unwrap();
    assert_ne!(speculation.drafter, "model", "only the text is searched");

    let required = speculating(Speculation::Required, to("bad"));
    let status = generate(&mut client, required)
        .await
        .expect_err("nothing drafts");
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(
        status.get_details_error_info().unwrap().reason,
        "SPECULATION_UNAVAILABLE"
    );
}
