//! A client in JavaScript, with types that Node reads from the definition as it runs.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::{ChatInput, ChatMessage};
use tandem_tests::grpc::{generate, request};

use crate::default_daemon;

/// Needs Node with `tests/node/package.json`, which Rust and a C compiler do not bring; `.ci/run node` does, and fails where
/// this does not run.
#[tokio::test]
#[ignore = "needs Node packages; run it with `.ci/run node`"]
async fn nothing_that_is_spelled_otherwise_gets_lost() {
    let daemon = default_daemon().await;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/node");
    let output = Command::new("node")
        .arg(tests.join("client.js"))
        .arg(daemon.home().socket())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/proto"))
        .env(
            "NODE_PATH",
            std::env::var_os("TANDEM_TEST_NODE").unwrap_or_default(),
        )
        .output()
        .expect("Node can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value = serde_json::from_slice(&output.stdout).expect("the script prints JSON");

    let mut same = request("", 12);
    same.input = Some(Input::Chat(ChatInput {
        messages: vec![ChatMessage {
            role: "user".to_owned(),
            content: "Why is the sky blue?".to_owned(),
        }],
    }));
    let ours = generate(&mut daemon.client().await, same).await.unwrap();
    assert_eq!(said["text"], ours.text.as_str());
    assert_eq!(
        said["completion_tokens"], 12,
        "sampling_params arrived: {said}"
    );
    let refused = json!([
        "tandem.v1.GenerateRequest has no field samplingParams",
        "tandem.v1.SamplingParams has no field maxTokens",
    ]);
    assert_eq!(said["refused"], refused);
}
