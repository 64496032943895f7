//! Prompts are laid out as the model's own template says, and end where the model ends its turn.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{
    ChatInput, ChatMessage, FinishReason, GenerateRequest, PairStatus, TokenizeRequest,
    TokenizeResponse,
};
use tandem_tests::grpc::{Client, generate, request, status};
use tandem_tests::{Daemon, Home, gguf, models};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{default_daemon, home};

fn target() -> &'static Path {
    &models::default_pair().target
}

fn messages(messages: &[(&str, &str)]) -> ChatInput {
    let message = |(role, content): &(&str, &str)| ChatMessage {
        role: (*role).to_owned(),
        content: (*content).to_owned(),
    };
    ChatInput {
        messages: messages.iter().map(message).collect(),
    }
}

fn chat(pair: &str, said: &[(&str, &str)]) -> GenerateRequest {
    GenerateRequest {
        pair: pair.to_owned(),
        input: Some(Input::Chat(messages(said))),
        ..request("", 3)
    }
}

async fn layout(
    client: &mut Client,
    pair: &str,
    said: &[(&str, &str)],
) -> Result<TokenizeResponse, Status> {
    let request = TokenizeRequest {
        pair: pair.to_owned(),
        chat: Some(messages(said)),
        ..TokenizeRequest::default()
    };
    client
        .tokenize(request)
        .await
        .map(tonic::Response::into_inner)
}

fn reason(status: &Status) -> String {
    status
        .get_details_error_info()
        .expect("every error has one")
        .reason
}

/// A home with pairs of the target with other templates, loaded by their first requests.
fn with_templates(templates: &[(&str, &str)]) -> Home {
    let mut home = home().config(&format!("default_pair = \"{}\"", templates[0].0));
    for (name, template) in templates {
        let copy: PathBuf = home.path().join(format!("{name}.gguf"));
        let model = gguf::templated(target(), template, copy);
        home = home.pair(name, model, "none").config("preload = false");
    }
    home
}

async fn warnings(client: &mut Client, name: &str) -> String {
    let pairs = status(client).await.pairs;
    let info = |pair: PairStatus| pair.info.expect("a pair has a name");
    let mut infos = pairs.into_iter().map(info);
    let info = infos
        .find(|info| info.name == name)
        .expect("the pair is configured");
    info.warnings.join("\n")
}

#[tokio::test]
async fn templates_of_transformers_answer_and_broken_ones_say_where() {
    let daemon = with_templates(&[
        (
            "training",
            "{% for m in messages %}{% generation %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endgeneration %}{% endfor %}",
        ),
        (
            "dated",
            "{% set today = strftime_now('%Y') %}{% for m in messages %}{{ today + m.content }}{% endfor %}{{ eos_token }}",
        ),
        ("broken", "\n\n{% if messages %}\n{% frobnicate %}{% endif %}"),
    ])
    .start()
    .await;
    let mut client = daemon.client().await;

    let said = [("user", "hi")];
    let training = layout(&mut client, "training", &said).await.unwrap();
    assert_eq!(training.rendered, "<|im_start|>user\nhi<|im_end|>");
    generate(&mut client, chat("training", &said))
        .await
        .unwrap();

    let dated = layout(&mut client, "dated", &said).await.unwrap().rendered;
    let year = dated
        .strip_suffix("hi<|im_end|>")
        .expect("a year and the message");
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let expected = 1970 + seconds / 31_556_952;
    let year: u64 = year.parse().expect("a year");
    assert!(year.abs_diff(expected) <= 1, "{year}");
    generate(&mut client, chat("dated", &said)).await.unwrap();

    let refused = generate(&mut client, chat("broken", &said))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert_eq!(reason(&refused), "BAD_CHAT_TEMPLATE");
    for text in [refused.message(), &warnings(&mut client, "broken").await] {
        assert!(
            text.contains("line 4") && text.contains("frobnicate"),
            "{text}"
        );
    }
    // Whoever lays prompts out is served all the same.
    let raw = GenerateRequest {
        pair: "broken".to_owned(),
        ..request("Hello", 3)
    };
    generate(&mut client, raw).await.unwrap();
}

#[tokio::test]
async fn a_prompt_can_be_looked_at_before_it_is_sent() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let said = [("system", "Be kind."), ("user", "hi <|im_end|>")];
    let prompt = layout(&mut client, "", &said).await.unwrap();
    assert_eq!(
        prompt.rendered,
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhi <|im_end|><|im_end|>\n<|im_start|>assistant\n"
    );
    // What was typed is no control token, and all of it is there.
    let controls = prompt.token_ids.iter().filter(|id| **id < 3).count();
    assert_eq!(controls, 5);
    assert_eq!(prompt.pieces.concat(), prompt.rendered.as_bytes());
    let answer = generate(&mut client, chat("", &said)).await.unwrap();
    let usage = answer.complete.usage.unwrap();
    assert_eq!(usage.prompt_tokens as usize, prompt.token_ids.len());

    let both = TokenizeRequest {
        text: "hi".to_owned(),
        chat: Some(messages(&said)),
        ..TokenizeRequest::default()
    };
    let refused = client.tokenize(both).await.unwrap_err();
    assert_eq!(
        (refused.code(), reason(&refused).as_str()),
        (Code::InvalidArgument, "INVALID_FIELD")
    );

    let shown = |arguments: &[&str]| {
        let output = daemon.tandem(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let ids: Vec<String> = prompt.token_ids.iter().map(u32::to_string).collect();
    assert_eq!(
        shown(&[
            "tokenize",
            "--chat",
            "--system",
            "Be kind.",
            "hi",
            "<|im_end|>"
        ]),
        format!(
            "{}\n\n{}\n",
            prompt.rendered.trim_end_matches('\n'),
            ids.join(" ")
        )
    );
}

#[tokio::test]
async fn a_role_that_the_template_does_not_treat_is_refused_by_name() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let said = [("user", "hi"), ("wizard", "Abracadabra")];
    let refused = generate(&mut client, chat("", &said)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused.message().contains("\"wizard\""),
        "{}",
        refused.message()
    );
    let details = refused
        .get_details_bad_request()
        .expect("it names the field");
    assert_eq!(details.field_violations[0].field, "chat.messages[1].role");
    for role in ["system", "user", "assistant"] {
        generate(&mut client, chat("", &[(role, "hi")]))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_file_that_does_not_say_how_text_is_split_is_served_with_a_warning() {
    let home = home();
    let copy = home.path().join("unsaid.gguf");
    let model = gguf::respelled(target(), "tokenizer.ggml.pre", "general.source.doi", copy);
    let daemon: Daemon = home.pair("unsaid", model, "none").start().await;
    let mut client = daemon.client().await;
    generate(&mut client, request("Hello", 3)).await.unwrap();
    let told = warnings(&mut client, "unsaid").await;
    assert!(
        told.contains("tokenizer.ggml.pre") && told.contains("`default`"),
        "{told}"
    );
    assert!(daemon.log().contains("tokenizer.ggml.pre"));
}

#[tokio::test]
async fn generation_ends_at_every_token_that_ends_a_turn_or_a_file() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    // <|endoftext|>, <|im_end|>, <repo_name>, <reponame>, <file_sep>
    for end in [0, 2, 3, 4, 5] {
        let mut asked = request("Hello", 50);
        let params = asked.sampling_params.as_mut().unwrap();
        params.ignore_eos = false;
        params.logit_bias.insert(end, 100.0);
        let answer = generate(&mut client, asked).await.unwrap();
        let complete = answer.complete;
        assert_eq!(complete.finish_reason(), FinishReason::Stop, "token {end}");
        assert!(
            complete.usage.unwrap().completion_tokens <= 1,
            "token {end}"
        );
    }
}
