//! Statuses with details, over a real socket, become errors that say what to do.

mod common;

use std::collections::HashMap;
use std::time::Duration;

use common::{Server, says};
use tandem_client::{Client, Error, GenerateRequest, Retry};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

fn details(reason: &str, metadata: &[(&str, &str)]) -> ErrorDetails {
    let metadata: HashMap<String, String> = metadata
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    ErrorDetails::with_error_info(reason, "tandem.v1", metadata)
}

/// Sends a status through a server and a client.
async fn received(code: Code, message: &'static str, details: ErrorDetails) -> Error {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let status = move || Status::with_error_details(code, message, details.clone());
    // In the headers, then in the trailers: both ways have to read the same.
    let server = Server::start(directory.path().join("s"), move |call| match call.number {
        0 => Err(status()),
        _ => Ok(says([Err(status())])),
    })
    .await;
    let client = Client::new(&server.socket)
        .expect("the path is short")
        .with_retry(Retry::never());
    let refused = client
        .generate(GenerateRequest::user("hi"))
        .await
        .expect_err("the server refuses");
    let broken = client
        .generate(GenerateRequest::user("hi"))
        .await
        .expect_err("the server refuses");
    assert_eq!(refused.to_string(), broken.to_string());
    refused
}

#[tokio::test]
async fn a_full_queue_says_when_to_try_again() {
    let mut full = details("QUEUE_FULL", &[]);
    full.set_retry_info(Some(Duration::from_millis(1500)));
    let error = received(Code::ResourceExhausted, "8 requests wait", full).await;
    assert!(matches!(error, Error::QueueFull { .. }), "{error:?}");
    assert_eq!(error.retry_after(), Some(Duration::from_millis(1500)));
    assert_eq!(
        error.to_string(),
        "the daemon has no room for the request: 8 requests wait; try again in 1.5 s"
    );
}

#[tokio::test]
async fn a_daemon_that_loads_or_drains_is_not_ready() {
    let mut loading = details("LOADING", &[]);
    loading.set_retry_info(Some(Duration::from_secs(1)));
    let error = received(Code::Unavailable, "loading", loading).await;
    assert_eq!(
        error.to_string(),
        "the daemon is not ready: loading; try again in 1.0 s"
    );
    assert!(!error.is_unavailable(), "somebody answers");
}

#[tokio::test]
async fn a_context_overflow_has_its_numbers() {
    let numbers = [
        ("prompt_tokens", "2000"),
        ("max_tokens", "100"),
        ("context_length", "2048"),
    ];
    let error = received(
        Code::InvalidArgument,
        "too long",
        details("CONTEXT_OVERFLOW", &numbers),
    )
    .await;
    assert!(
        matches!(
            error,
            Error::ContextOverflow {
                prompt_tokens: 2000,
                max_tokens: 100,
                context_length: 2048
            }
        ),
        "{error:?}"
    );
    let error = received(
        Code::InvalidArgument,
        "too long",
        details("CONTEXT_OVERFLOW", &[]),
    )
    .await;
    assert_eq!(error.to_string(), "the request is not valid: too long");
}

#[tokio::test]
async fn bad_fields_are_named() {
    let mut bad = details("INVALID_FIELD", &[]);
    bad.set_bad_request(vec![FieldViolation::new(
        "sampling_params.top_p",
        "2 is over 1",
    )]);
    let error = received(
        Code::InvalidArgument,
        "sampling_params.top_p: 2 is over 1",
        bad,
    )
    .await;
    let Error::InvalidRequest { fields, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (fields[0].field.as_str(), fields[0].description.as_str()),
        ("sampling_params.top_p", "2 is over 1")
    );
}

#[tokio::test]
async fn an_unknown_pair_is_named() {
    let mut unknown = details("UNKNOWN_PAIR", &[]);
    unknown.set_resource_info("tandem.v1.Pair", "big", "", "no such pair");
    let error = received(Code::NotFound, "there is no pair \"big\"", unknown).await;
    assert!(
        matches!(&error, Error::UnknownPair { pair, .. } if pair == "big"),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "there is no pair \"big\"; `tandem status` lists the pairs"
    );
}

#[tokio::test]
async fn preconditions_are_told_apart() {
    let error = received(
        Code::FailedPrecondition,
        "no draft",
        details("SPECULATION_UNAVAILABLE", &[]),
    )
    .await;
    assert!(
        matches!(error, Error::SpeculationUnavailable { .. }),
        "{error:?}"
    );
    let error = received(
        Code::FailedPrecondition,
        "not loaded",
        details("PAIR_NOT_LOADED", &[]),
    )
    .await;
    assert!(matches!(error, Error::PairNotLoaded { .. }), "{error:?}");
}

#[tokio::test]
async fn other_statuses_keep_their_code() {
    let error = received(
        Code::PermissionDenied,
        "user 5",
        details("FOREIGN_USER", &[]),
    )
    .await;
    assert!(matches!(error, Error::PermissionDenied { .. }), "{error:?}");
    let error = received(Code::DeadlineExceeded, "300 ms", details("DEADLINE", &[])).await;
    assert_eq!(error.to_string(), "the deadline passed: 300 ms");
    let error = received(Code::Internal, "a step failed", ErrorDetails::new()).await;
    assert!(
        matches!(
            error,
            Error::Failed {
                code: Code::Internal,
                ..
            }
        ),
        "{error:?}"
    );
}
