//! Drafts that know less than their targets.

use std::collections::BTreeMap;

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{GenerateRequest, Speculation, TokenIds};
use tandem_tests::grpc::{Client, generate, request, speculating};
use tandem_tests::models;

use super::{ask, daemon, info, small, to};

/// Tokens of the default pair.
const TOKENS: u32 = 49_152;

#[tokio::test]
async fn one_request_beyond_the_drafts_vocabulary_costs_nobody_the_draft() {
    let directory = tempfile::tempdir().unwrap();
    let padded = small()
        .change("token_embd.weight", |tensor| {
            let row = tensor.data.len() / TOKENS as usize;
            tensor.data.extend_from_within(..64 * row);
            tensor.shape[1] += 64;
        })
        .write(directory.path().join("padded.gguf"));
    let draft = &models::default_pair().draft;
    let daemon = daemon(&[("padded", &padded, draft)]).await;
    let mut client = daemon.client().await;
    let drafted = async |client: &mut Client| {
        let required = speculating(Speculation::Required, ask("padded"));
        let answer = generate(client, required)
            .await
            .expect("the draft is there");
        assert_eq!(
            answer.complete.speculation.expect("it says").drafter,
            "model"
        );
    };
    drafted(&mut client).await;
    let mut biased = ask("padded");
    if let Some(params) = &mut biased.sampling_params {
        params.logit_bias = BTreeMap::from([(TOKENS + 48, 100.0)]);
    }
    let answer = generate(&mut client, biased).await.expect("it is served");
    assert_eq!(answer.token_ids, [TOKENS + 48; 24]);
    drafted(&mut client).await;
    let mut ids: Vec<u32> = (1000..1020).collect();
    ids[4] = TOKENS + 63;
    let given = GenerateRequest {
        input: Some(Input::TokenIds(TokenIds { ids })),
        ..ask("padded")
    };
    generate(&mut client, given).await.expect("it is served");
    drafted(&mut client).await;
    assert_eq!(info(&mut client, "padded").await.speculation_off_reason, "");
}

#[tokio::test]
async fn a_draft_that_reaches_less_far_is_named_and_changes_no_text() {
    let directory = tempfile::tempdir().unwrap();
    let short = small()
        .number("llama.context_length", 512)
        .text("general.name", "a short draft")
        .write(directory.path().join("short.gguf"));
    let target = &models::default_pair().draft;
    let daemon = daemon(&[("pair", target, &short)]).await;
    let mut client = daemon.client().await;
    for tokens in [480, 700] {
        let prompt = |speculation| {
            let ids = (0..tokens).map(|at| 1000 + at * 37 % 20_000).collect();
            let request = GenerateRequest {
                input: Some(Input::TokenIds(TokenIds { ids })),
                ..to("pair", request("", 48))
            };
            speculating(speculation, request)
        };
        let plain = generate(&mut client, prompt(Speculation::Off))
            .await
            .unwrap();
        let drafted = generate(&mut client, prompt(Speculation::On))
            .await
            .unwrap();
        assert_eq!(plain.token_ids, drafted.token_ids);
    }
    let info = info(&mut client, "pair").await;
    assert_eq!(info.speculation_off_reason, "", "the draft is not lost");
    let warnings = info.warnings.join("\n");
    for part in ["a short draft", "512", "8192"] {
        assert!(
            warnings.contains(part),
            "{part:?} is missing in {warnings:?}"
        );
    }
}
