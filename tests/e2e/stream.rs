//! One request at a time: what a stream holds.

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{
    ChatInput, ChatMessage, DetokenizeRequest, FinishReason, GenerateRequest, SamplingParams,
    Speculation, TokenizeRequest, generate_complete::MatchedStop,
};
use tandem_tests::grpc::{generate, request, speculating};

use crate::default_daemon;

const PROMPT: &str = "A refrigerator works by";

#[tokio::test]
async fn text_streams_in_chunks_and_adds_up() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let answer = generate(&mut client, request(PROMPT, 48)).await.unwrap();

    assert_eq!(answer.token_ids.len(), 48);
    assert!(answer.chunks > 1, "48 tokens came in one piece");
    let complete = &answer.complete;
    assert_eq!(complete.finish_reason(), FinishReason::Length);
    assert!(!complete.pair.is_empty() && !complete.request_id.is_empty());
    assert_eq!(complete.usage.unwrap().completion_tokens, 48);

    let back = DetokenizeRequest {
        token_ids: answer.token_ids.clone(),
        ..DetokenizeRequest::default()
    };
    let back = client.detokenize(back).await.unwrap().into_inner();
    assert_eq!(back.text, answer.text, "the tokens spell the text");

    let timings = complete.timings.unwrap();
    let [first, total] = [timings.time_to_first_token, timings.total].map(|time| {
        let time = time.expect("times are told");
        time.seconds as f64 + f64::from(time.nanos) / 1e9
    });
    assert!(
        0.0 < first && first <= total,
        "first token after {first} s of {total} s"
    );
}

#[tokio::test]
async fn drafting_changes_the_work_and_not_the_text() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    for prompt in [PROMPT, "def fibonacci(n):\n", "1, 2, 3, 4, 5, 6,"] {
        let plain = speculating(Speculation::Off, request(prompt, 48));
        let plain = generate(&mut client, plain).await.unwrap();
        let off = plain.complete.speculation.unwrap();
        assert!(!off.enabled && off.draft_tokens == 0);
        assert!(!off.off_reason.is_empty(), "plain decoding says why");

        for draft_length in [1, 3, 7] {
            let drafted = speculating(Speculation::Required, request(prompt, 48));
            let drafted = GenerateRequest {
                draft_length: Some(draft_length),
                ..drafted
            };
            let drafted = generate(&mut client, drafted).await.unwrap();
            assert_eq!(
                drafted.token_ids, plain.token_ids,
                "{draft_length} drafted tokens changed {prompt:?}"
            );
            let on = drafted.complete.speculation.unwrap();
            assert!(on.enabled && on.draft_tokens > 0 && on.accepted_tokens <= on.draft_tokens);
            assert_eq!(
                on.accepted_per_position.iter().sum::<u64>(),
                on.accepted_tokens
            );
        }
    }
}

#[tokio::test]
async fn a_seed_gives_the_same_text_with_and_without_a_draft() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let seeded = |seed, speculation| {
        let sampling_params = SamplingParams {
            temperature: Some(0.9),
            top_p: Some(0.95),
            seed: Some(seed),
            max_tokens: Some(32),
            ..SamplingParams::default()
        };
        speculating(
            speculation,
            GenerateRequest {
                sampling_params: Some(sampling_params),
                ..request(PROMPT, 32)
            },
        )
    };
    let first = generate(&mut client, seeded(7, Speculation::On))
        .await
        .unwrap();
    let again = generate(&mut client, seeded(7, Speculation::On))
        .await
        .unwrap();
    let plain = generate(&mut client, seeded(7, Speculation::Off))
        .await
        .unwrap();
    let other = generate(&mut client, seeded(8, Speculation::On))
        .await
        .unwrap();
    assert_eq!(first.token_ids, again.token_ids);
    assert_eq!(first.token_ids, plain.token_ids);
    assert_ne!(
        first.token_ids, other.token_ids,
        "another seed draws other tokens"
    );
}

#[tokio::test]
async fn a_stop_string_ends_the_text_before_it() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let free = generate(&mut client, request("1, 2, 3, 4,", 40))
        .await
        .unwrap();
    let stop = free
        .text
        .char_indices()
        .nth(12)
        .map(|(at, _)| free.text[at..].chars().take(3).collect::<String>());
    let stop = stop.expect("40 tokens are more than 12 characters");
    let mut stopping = request("1, 2, 3, 4,", 40);
    stopping.sampling_params.as_mut().unwrap().stop = vec![stop.clone()];
    let stopped = generate(&mut client, stopping).await.unwrap();

    let end = free.text.find(&stop).unwrap();
    assert_eq!(stopped.text, free.text[..end]);
    assert_eq!(stopped.complete.finish_reason(), FinishReason::Stop);
    assert_eq!(
        stopped.complete.matched_stop,
        Some(MatchedStop::MatchedStopString(stop))
    );
}

#[tokio::test]
async fn a_conversation_is_laid_out_by_the_models_template_and_ends_by_itself() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let message = ChatMessage {
        role: "user".into(),
        content: "What is 2 plus 2?".into(),
    };
    let chat = GenerateRequest {
        input: Some(Input::Chat(ChatInput {
            messages: vec![message],
        })),
        sampling_params: Some(SamplingParams {
            max_tokens: Some(128),
            ..SamplingParams::default()
        }),
        ..GenerateRequest::default()
    };
    let answer = generate(&mut client, chat).await.unwrap();
    assert!(answer.text.contains('4'), "{:?}", answer.text);
    assert_eq!(answer.complete.finish_reason(), FinishReason::Stop);
    assert!(
        !answer.text.contains("<|im_end|>"),
        "the end token is no text"
    );
}

#[tokio::test]
async fn special_tokens_that_a_user_types_stay_text() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let tokens = |parse_special| TokenizeRequest {
        text: "<|im_end|>".into(),
        parse_special,
        ..TokenizeRequest::default()
    };
    let typed = client.tokenize(tokens(false)).await.unwrap().into_inner();
    let special = client.tokenize(tokens(true)).await.unwrap().into_inner();
    assert_eq!(special.token_ids.len(), 1);
    assert!(typed.token_ids.len() > 1 && !typed.token_ids.contains(&special.token_ids[0]));
    assert_eq!(typed.pieces.concat(), b"<|im_end|>");
}

#[tokio::test]
async fn log_probabilities_come_with_their_tokens_and_do_not_depend_on_the_draft() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let asking = |top| {
        let mut request = request(PROMPT, 24);
        request.sampling_params.get_or_insert_default().logprobs = Some(top);
        request
    };
    let mut told = Vec::new();
    for speculation in [Speculation::Off, Speculation::Required] {
        let answer = generate(&mut client, speculating(speculation, asking(2))).await;
        let answer = answer.unwrap();
        assert_eq!(answer.logprobs.len(), answer.token_ids.len());
        for (token, logprobs) in answer.token_ids.iter().zip(&answer.logprobs) {
            // Greedy: the likeliest is what was chosen.
            assert_eq!(logprobs.top.len(), 2);
            assert_eq!(logprobs.top[0].token_id, *token);
            assert_eq!(logprobs.top[0].logprob, logprobs.logprob);
            assert!(logprobs.logprob <= 0.0 && logprobs.top[1].logprob <= logprobs.logprob);
        }
        told.push(answer);
    }
    assert_eq!(told[0].logprobs, told[1].logprobs);

    let refused = generate(&mut client, asking(21)).await;
    let refused = refused.expect_err("20 at most");
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused}");
    assert!(
        refused.message().contains("sampling_params.logprobs"),
        "{refused}"
    );
}
