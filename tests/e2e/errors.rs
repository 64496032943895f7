//! What cannot be served gets a typed error that says what to do, and the daemon goes on.

use std::time::Duration;

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{FinishReason, GenerateRequest, SamplingParams, TokenIds};
use tandem_tests::grpc::{Client, generate, long_prompt, request, until_queued};
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Status};
use tonic_types::StatusExt as _;

use crate::{default_daemon, home};

async fn refusal(client: &mut Client, request: GenerateRequest) -> Status {
    let refusal = generate(client, request)
        .await
        .expect_err("the request cannot be served");
    let answer = generate(client, self::request("Hello", 2))
        .await
        .expect("the daemon goes on");
    assert_eq!(answer.token_ids.len(), 2);
    refusal
}

fn reason(status: &Status) -> String {
    status
        .get_details_error_info()
        .expect("every error has a reason")
        .reason
}

#[tokio::test]
async fn an_unknown_pair() {
    let daemon = default_daemon().await;
    let unknown = GenerateRequest {
        pair: "nonesuch".into(),
        ..request("Hello", 2)
    };
    let status = refusal(&mut daemon.client().await, unknown).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::NotFound, "UNKNOWN_PAIR")
    );
    assert_eq!(
        status.get_details_resource_info().unwrap().resource_name,
        "nonesuch"
    );
    assert!(
        status.message().contains("default"),
        "the message names the pairs there are: {}",
        status.message()
    );
}

#[tokio::test]
async fn fields_out_of_range() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let sampling = |params| GenerateRequest {
        sampling_params: Some(params),
        ..request("Hello", 2)
    };
    let default = SamplingParams {
        max_tokens: Some(2),
        ..SamplingParams::default()
    };
    let tokens = |ids| GenerateRequest {
        input: Some(Input::TokenIds(TokenIds { ids })),
        ..request("", 2)
    };
    for (field, bad) in [
        (
            "sampling_params.top_p",
            sampling(SamplingParams {
                top_p: Some(1.5),
                ..default.clone()
            }),
        ),
        (
            "sampling_params.temperature",
            sampling(SamplingParams {
                temperature: Some(f32::NAN),
                ..default.clone()
            }),
        ),
        (
            "sampling_params.max_tokens",
            sampling(SamplingParams {
                max_tokens: Some(0),
                ..default.clone()
            }),
        ),
        (
            "sampling_params.stop",
            sampling(SamplingParams {
                stop: vec![String::new()],
                ..default.clone()
            }),
        ),
        (
            "draft_length",
            GenerateRequest {
                draft_length: Some(64),
                ..request("Hello", 2)
            },
        ),
        ("token_ids.ids", tokens(vec![u32::MAX])),
        (
            "input",
            GenerateRequest {
                input: None,
                ..request("", 2)
            },
        ),
    ] {
        let status = refusal(&mut client, bad).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status:?}");
        let violations = status
            .get_details_bad_request()
            .expect("the fields are named")
            .field_violations;
        let named = violations
            .iter()
            .any(|violation| violation.field.starts_with(field));
        assert!(named, "{field} is not among {violations:?}");
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_the_context() {
    let daemon = default_daemon().await;
    let status = refusal(&mut daemon.client().await, request(&long_prompt(10_000), 2)).await;
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::InvalidArgument, "CONTEXT_OVERFLOW")
    );
    let metadata = status.get_details_error_info().unwrap().metadata;
    let number = |key: &str| metadata[key].parse::<u64>().expect("a number of tokens");
    assert!(
        number("prompt_tokens") >= 10_000 && number("prompt_tokens") > number("context_length"),
        "{metadata:?}"
    );
}

#[tokio::test]
async fn a_full_queue() {
    let daemon = home()
        .config("[server]\nmax_concurrent = 1\nmax_queue = 1")
        .start()
        .await;
    let mut client = daemon.client().await;
    let mut running = client
        .generate(request("Once upon a time", 1500))
        .await
        .unwrap()
        .into_inner();
    running.next().await.unwrap().unwrap();
    let waiting = client
        .generate(request("In the beginning", 1500))
        .await
        .unwrap()
        .into_inner();
    until_queued(&mut client, 1, 1).await;

    let status = generate(&mut client, request("Hello", 2))
        .await
        .expect_err("the queue is full");
    assert_eq!(
        (status.code(), reason(&status).as_str()),
        (Code::ResourceExhausted, "QUEUE_FULL")
    );
    assert!(status.get_details_retry_info().unwrap().retry_delay > Some(Duration::ZERO));
    assert_eq!(
        status.get_details_quota_failure().unwrap().violations.len(),
        1
    );

    drop((running, waiting));
    until_queued(&mut client, 0, 0).await;
    generate(&mut client, request("Hello", 2))
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn a_deadline_in_mid_stream() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut limited = Request::new(request("Once upon a time", 1500));
    limited.set_timeout(Duration::from_millis(700));
    let mut stream = client.generate(limited).await.unwrap().into_inner();
    let status = loop {
        match stream.next().await.expect("a stream that is cut says so") {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    until_queued(&mut client, 0, 0).await;
}

#[tokio::test]
async fn a_time_limit_ends_with_what_there_is() {
    let daemon = default_daemon().await;
    let limit = prost_types::Duration {
        seconds: 0,
        nanos: 700_000_000,
    };
    let limited = GenerateRequest {
        time_limit: Some(limit),
        ..request("Once upon a time", 1500)
    };
    let answer = generate(&mut daemon.client().await, limited).await.unwrap();
    assert_eq!(answer.complete.finish_reason(), FinishReason::TimeLimit);
    assert!(
        (1..1500).contains(&answer.token_ids.len()),
        "{} tokens",
        answer.token_ids.len()
    );
}
