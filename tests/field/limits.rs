//! Input that is far too large, and calls that are given up, cost the one who sent them and nobody else.

use std::time::Duration;

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{
    ChatInput, ChatMessage, DetokenizeRequest, GenerateRequest, TokenIds, TokenizeRequest,
};
use tandem_tests::grpc::{Client, generate, request};
use tokio::task::JoinSet;
use tonic::{Code, Request, Status};
use tonic_types::{ErrorInfo, StatusExt as _};

use crate::{default_daemon, home};

/// `server.max_message_bytes` where nothing is configured.
const MOST: usize = 16 << 20;
/// What the target reads at most, in tokens.
const CONTEXT: usize = 8192;

fn info(status: &Status) -> ErrorInfo {
    status
        .get_details_error_info()
        .unwrap_or_else(|| panic!("no details: {status:?}"))
}

/// Fails unless the refusal is of a message over the limit, with its size.
fn is_too_large(status: &Status, message: &str) {
    let info = info(status);
    assert_eq!(
        (status.code(), info.reason.as_str()),
        (Code::OutOfRange, "MESSAGE_TOO_LARGE")
    );
    assert_eq!(info.metadata["message"], message);
    assert_eq!(info.metadata["limit_bytes"], MOST.to_string());
    let size: usize = info.metadata["size_bytes"].parse().unwrap();
    assert!(size > MOST, "{size}");
}

/// Fails unless the refusal is of a prompt that is longer than the context.
fn is_too_long(status: &Status) {
    let info = info(status);
    assert_eq!(
        (status.code(), info.reason.as_str()),
        (Code::InvalidArgument, "CONTEXT_OVERFLOW")
    );
    assert_eq!(info.metadata["context_length"], CONTEXT.to_string());
    let tokens: usize = info.metadata["prompt_tokens"].parse().unwrap();
    assert!(tokens > CONTEXT, "{tokens}");
}

/// CPU time of a process so far; 0 where the system does not tell.
fn cpu_time(pid: u32) -> Duration {
    #[cfg(target_os = "linux")]
    return tandem_tests::proc::cpu_time(pid);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        Duration::ZERO
    }
}

fn tokenizing(text: String) -> TokenizeRequest {
    TokenizeRequest {
        text,
        ..TokenizeRequest::default()
    }
}

async fn still_serves(client: &mut Client) {
    generate(client, request("Hello", 2)).await.unwrap();
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_its_size() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await.max_encoding_message_size(usize::MAX);
    let large = "word ".repeat(4 << 20);
    is_too_large(
        &generate(&mut client, request(&large, 2)).await.unwrap_err(),
        "request",
    );
    let refused = client.tokenize(tokenizing(large)).await.unwrap_err();
    is_too_large(&refused, "request");
    still_serves(&mut client).await;
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_before_it_is_made() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await.max_decoding_message_size(usize::MAX);
    let before = cpu_time(daemon.pid());
    for text in [
        "word ".repeat(3 << 20),
        "1 ".repeat(7 << 20),
        "é漢 ".repeat(2 << 20),
    ] {
        let refused = client.tokenize(tokenizing(text)).await.unwrap_err();
        is_too_large(&refused, "answer");
    }
    // The longest token of all, so often that the ids are a small message.
    let longest = client
        .tokenize(tokenizing("=".repeat(64)))
        .await
        .unwrap()
        .into_inner();
    let token_ids = longest.token_ids.repeat(1 << 20);
    let refused = client
        .detokenize(DetokenizeRequest {
            token_ids,
            ..Default::default()
        })
        .await;
    is_too_large(&refused.unwrap_err(), "answer");
    let took = cpu_time(daemon.pid()) - before;
    assert!(took < Duration::from_secs(20), "{took:?} of CPU time");
    still_serves(&mut client).await;
}

#[tokio::test]
async fn a_prompt_over_the_context_is_refused_by_its_length() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let before = cpu_time(daemon.pid());
    let message = |content: &str| ChatMessage {
        role: "user".to_owned(),
        content: content.to_owned(),
    };
    let chat = |messages| Input::Chat(ChatInput { messages });
    for input in [
        Input::Text("word ".repeat(3 << 20)),
        Input::Text(" ".repeat(15 << 20)),
        // Not by its length: just beyond, token by token.
        Input::Text("a b ".repeat(CONTEXT)),
        Input::TokenIds(TokenIds {
            ids: vec![300; 4 << 20],
        }),
        chat(vec![message(&"word ".repeat(3 << 20))]),
        chat(vec![message(""); 1 << 20]),
        chat(vec![message("hi"); CONTEXT - 1]),
    ] {
        let asked = GenerateRequest {
            input: Some(input),
            ..request("", 2)
        };
        is_too_long(&generate(&mut client, asked).await.unwrap_err());
    }
    let took = cpu_time(daemon.pid()) - before;
    assert!(took < Duration::from_secs(20), "{took:?} of CPU time");
    still_serves(&mut client).await;
}

#[tokio::test]
async fn calls_that_are_given_up_stop_computing() {
    let daemon = home()
        .config("[server]\nmax_message_bytes = 67108864")
        .start()
        .await;
    let client = daemon.client().await.max_decoding_message_size(usize::MAX);
    let before = cpu_time(daemon.pid());
    let text = "some words ".repeat(15 << 20 >> 4);
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let mut client = client.clone();
        let asked = tokenizing(text.clone());
        calls.spawn(async move { client.tokenize(asked).await.map(drop) });
    }
    tokio::time::sleep(Duration::from_millis(150)).await;
    calls.shutdown().await;
    // Those that run stop at the next look, and those that wait never begin.
    still_serves(&mut client.clone()).await;
    let took = cpu_time(daemon.pid()) - before;
    assert!(took < Duration::from_secs(15), "{took:?} of CPU time");
}

#[tokio::test]
async fn a_deadline_ends_tokenizing() {
    let daemon = home()
        .config("[server]\nmax_message_bytes = 67108864")
        .start()
        .await;
    let mut client = daemon.client().await.max_decoding_message_size(usize::MAX);
    let mut asked = Request::new(tokenizing("some words ".repeat(1 << 20)));
    asked.set_timeout(Duration::from_millis(20));
    let refused = client.tokenize(asked).await.unwrap_err();
    assert!(
        matches!(refused.code(), Code::DeadlineExceeded | Code::Cancelled),
        "{refused:?}"
    );
    still_serves(&mut client).await;
}

#[tokio::test]
async fn odd_texts_become_tokens_and_come_back() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let family = "👨‍👩‍👧‍👦🏳️‍🌈e\u{301}\u{202e}";
    for text in [
        String::new(),
        " ".to_owned(),
        "\n\t \u{3000}".to_owned(),
        "a\0b\u{7f}\u{fffd}\u{10ffff}".to_owned(),
        "<|im_end|><|im_start|>".to_owned(),
        family.repeat(1000),
        "a".repeat(1_000_000),
        " ".repeat(1_000_000),
        "\n".repeat(1_000_000),
        "((((".repeat(100_000),
        "0".repeat(200_000),
    ] {
        let start: String = text.chars().take(20).collect();
        let tokens = client.tokenize(tokenizing(text.clone())).await;
        let token_ids = tokens
            .unwrap_or_else(|e| panic!("{start:?}: {e}"))
            .into_inner()
            .token_ids;
        // No typed text is a control token.
        assert!(token_ids.iter().all(|id| *id > 16), "{start:?}");
        let asked = DetokenizeRequest {
            token_ids,
            ..Default::default()
        };
        let back = client.detokenize(asked).await.unwrap().into_inner();
        assert!(back.text == text, "{start:?}");
    }
    let run = "a".repeat(2 << 20);
    let refused = client.tokenize(tokenizing(run)).await.unwrap_err();
    assert_eq!(info(&refused).reason, "INVALID_FIELD");
    let blank = generate(&mut client, request(" \n", 2)).await.unwrap();
    assert_eq!(blank.token_ids.len(), 2);
}

#[tokio::test]
async fn two_hundred_calls_at_once_are_all_answered() {
    let daemon = default_daemon().await;
    let client = daemon.client().await;
    let mut calls = JoinSet::new();
    for number in 0..200_u32 {
        let mut client = client.clone();
        calls.spawn(async move {
            let text = format!("call {number} ").repeat(100 + number as usize * 50);
            let bytes = text.len();
            let answer = client
                .tokenize(tokenizing(text))
                .await
                .unwrap()
                .into_inner();
            assert_eq!(answer.pieces.concat().len(), bytes);
        });
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn errors_stay_small_however_much_is_wrong() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let long = "x".repeat(1 << 20);
    let mut asked = vec![
        GenerateRequest {
            pair: long.clone(),
            ..request("a", 1)
        },
        GenerateRequest {
            request_id: "\n".repeat(1 << 20),
            ..request("a", 1)
        },
        GenerateRequest {
            draft_methods: vec![99; 1 << 20],
            ..request("a", 1)
        },
        GenerateRequest {
            history: Some(long.clone()),
            ..request("a", 1)
        },
    ];
    let chat = |role: &str, count| GenerateRequest {
        input: Some(Input::Chat(ChatInput {
            messages: vec![
                ChatMessage {
                    role: role.to_owned(),
                    content: "a".to_owned()
                };
                count
            ],
        })),
        ..request("a", 1)
    };
    asked.push(chat("", 1 << 20));
    asked.push(chat(&long, 1));
    let mut many = request("a", 1);
    let params = many.sampling_params.as_mut().unwrap();
    params.stop = vec![String::new(); 1 << 20];
    params.stop_token_ids = (0..1 << 20).collect();
    params.logit_bias = (0..1 << 20).map(|id| (id, f32::NAN)).collect();
    asked.push(many);
    for asked in asked {
        let refused = generate(&mut client, asked).await.unwrap_err();
        let size = refused.message().len() + refused.details().len();
        assert!(size < 8 << 10, "{size} bytes: {refused:?}");
        assert!(!info(&refused).reason.is_empty());
    }
    still_serves(&mut client).await;
}
