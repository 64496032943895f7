//! Drafters change how fast text comes, never which text; and what they did is told.

use tandem_proto::v1::{
    DraftMethod, GenerateRequest, Residency, SamplingParams, Speculation, SpeculationStats,
};
use tandem_tests::grpc::{generate, only_pair, request, speculating, status};
use tandem_tests::{Daemon, models};

use crate::{default_daemon, home};

/// Copies itself, so that lookup has something to do, and is not greedy.
fn seeded(methods: &[DraftMethod]) -> GenerateRequest {
    let prompt = "one two three four five six seven\n".repeat(4);
    let request = request(&prompt, 48);
    GenerateRequest {
        sampling_params: Some(SamplingParams {
            temperature: Some(0.7),
            seed: Some(11),
            ..request.sampling_params.unwrap()
        }),
        draft_methods: methods.iter().map(|method| (*method).into()).collect(),
        ..request
    }
}

/// A daemon whose default target drafts for itself.
async fn self_drafting() -> Daemon {
    let target = &models::default_pair().target;
    let keys = "draft = \"self\"\nexit_adapter = \"bundled:smollm2-135m-exit6\"";
    let table = format!("[pairs.own]\ntarget = {target:?}\n{keys}");
    home().config(&table).start().await
}

#[tokio::test]
async fn a_seeded_text_is_the_same_whatever_drafts() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let plain = speculating(Speculation::Off, seeded(&[]));
    let expected = generate(&mut client, plain).await.unwrap();
    let mut requests = vec![seeded(&[])];
    for methods in [
        &[DraftMethod::Model][..],
        &[DraftMethod::Lookup],
        &[DraftMethod::Model, DraftMethod::Lookup],
    ] {
        requests.push(seeded(methods));
        requests.push(GenerateRequest {
            draft_length: Some(3),
            history: Some("shared".to_owned()),
            ..seeded(methods)
        });
    }
    for request in requests {
        let what = format!("{:?}, {:?}", request.draft_methods, request.draft_length);
        let fixed = request.draft_length.is_some();
        let answer = generate(&mut client, request).await.unwrap();
        assert_eq!(answer.token_ids, expected.token_ids, "{what}");
        let did = answer.complete.speculation.unwrap();
        assert!(!fixed || did.draft_tokens > 0, "{what}: {did:?}");
    }

    let own = self_drafting().await;
    let mut client = own.client().await;
    let fixed = GenerateRequest {
        draft_length: Some(2),
        ..seeded(&[DraftMethod::Self_])
    };
    let answer = generate(&mut client, fixed).await.unwrap();
    assert_eq!(answer.token_ids, expected.token_ids, "self");
    let did = answer.complete.speculation.unwrap();
    assert!(did.drafter == "self" && did.draft_tokens > 0, "{did:?}");

    let info = only_pair(&mut client).await.info.unwrap();
    assert_eq!(info.residency(), Residency::Warm);
    let methods: Vec<DraftMethod> = info.draft_methods().collect();
    assert_eq!(methods, [DraftMethod::Self_, DraftMethod::Lookup]);
    assert_eq!(info.exit_layer, 6);
    let memory = status(&mut client).await.memory.unwrap();
    assert!(
        memory.draft_weights > 0 && memory.draft_weights < memory.target_weights / 10,
        "an adapter is small: {memory:?}"
    );
}

#[tokio::test]
async fn what_drafting_did_is_told_of_requests_pairs_and_all() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut told = Vec::new();
    for methods in [&[DraftMethod::Model][..], &[DraftMethod::Lookup]] {
        let fixed = GenerateRequest {
            draft_length: Some(2),
            ..seeded(methods)
        };
        let answer = generate(&mut client, fixed).await.unwrap();
        told.push(answer.complete.speculation.unwrap());
    }
    for did in &told {
        let positions: u64 = did.accepted_per_position.iter().sum();
        assert_eq!(positions, did.accepted_tokens, "{did:?}");
        assert!(did.verify_seconds > 0.0 && did.measured_speedup > 0.0);
        let bypassed = (did.steps - did.drafted_steps) as f64 / did.steps as f64;
        assert!((did.bypass_fraction - bypassed).abs() < 1e-9, "{did:?}");
    }
    assert!(told[0].draft_seconds > 0.0, "a model takes time");
    let sum = |figure: fn(&SpeculationStats) -> f64| told.iter().map(figure).sum::<f64>();

    let pair = only_pair(&mut client).await.speculation.unwrap();
    let all = status(&mut client).await.speculation.unwrap();
    assert_eq!(pair, all, "there is one pair");
    assert!(all.enabled);
    for (name, figure) in [
        (
            "drafted",
            (|s| s.draft_tokens as f64) as fn(&SpeculationStats) -> f64,
        ),
        ("accepted", |s| s.accepted_tokens as f64),
        ("drafted steps", |s| s.drafted_steps as f64),
        ("draft time", |s| s.draft_seconds),
        ("verify time", |s| s.verify_seconds),
        ("ledger", |s| s.ledger_seconds),
    ] {
        let (total, requests) = (figure(&all), sum(figure));
        assert!(
            (total - requests).abs() < 1e-6,
            "{name}: {total} against {requests}"
        );
    }

    let costs = only_pair(&mut client).await.step_costs;
    assert!(
        costs
            .iter()
            .all(|cost| cost.seconds > 0.0 && cost.samples > 0),
        "{costs:?}"
    );
    let measured = |rows| costs.iter().any(|cost| cost.rows == rows);
    assert!(
        measured(1) && measured(3),
        "plain steps and steps of two drafted tokens: {costs:?}"
    );

    let table = daemon.tandem(&["status"]).output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    for part in [
        "on: model, lookup",
        "mean acceptance length",
        "times plain decoding",
    ] {
        assert!(table.contains(part), "{part} is missing in:\n{table}");
    }
    let log = daemon.log();
    for part in [
        "bypass_fraction",
        "verify_ms",
        "measured_speedup",
        "ledger_ms",
    ] {
        assert!(log.contains(part), "{part} is missing in:\n{log}");
    }
}

#[tokio::test]
async fn requiring_a_drafter_that_is_not_there_is_refused() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let required = |method| speculating(Speculation::Required, seeded(&[method]));
    let refused = generate(&mut client, required(DraftMethod::Self_)).await;
    let status = refused.expect_err("the pair has a model and lookup");
    assert_eq!(status.code(), tonic::Code::FailedPrecondition, "{status}");
    generate(&mut client, required(DraftMethod::Lookup))
        .await
        .unwrap();

    let ignored = generate(&mut client, seeded(&[DraftMethod::Self_])).await;
    let did = ignored.unwrap().complete.speculation.unwrap();
    assert!(
        !did.enabled && did.off_reason.contains("draft method"),
        "{did:?}"
    );
}
