//! A client that we did not write: Python's grpcio, with types from the server's reflection alone.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tandem_proto::SERVICE_NAME;
use tandem_proto::v1::FinishReason;
use tandem_tests::grpc::{generate, request};

use crate::default_daemon;

/// Needs Python with `tests/python/requirements.txt`, which Rust and a C compiler do not bring; `.ci/run python` does,
/// and fails where this does not run.
#[tokio::test]
#[ignore = "needs Python packages; run it with `.ci/run python`"]
async fn lists_checks_and_streams() {
    let daemon = default_daemon().await;
    let python = std::env::var_os("TANDEM_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/python/client.py");
    let output = Command::new(python)
        .arg(script)
        .arg(daemon.home().socket())
        .output()
        .expect("Python can be run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value = serde_json::from_slice(&output.stdout).expect("the script prints JSON");

    for services in ["services_v1", "services_v1alpha"] {
        for service in [SERVICE_NAME, "grpc.health.v1.Health"] {
            assert!(
                said[services]
                    .as_array()
                    .is_some_and(|names| names.contains(&service.into())),
                "{said}"
            );
        }
    }
    assert_eq!(
        (&said["health"], &said["service_health"]),
        (&"SERVING".into(), &"SERVING".into())
    );

    // The same request as the script's, by our own types.
    let mut same = request("The capital of France is", 16);
    same.sampling_params.as_mut().unwrap().ignore_eos = false;
    let ours = generate(&mut daemon.client().await, same).await.unwrap();
    assert_eq!(said["text"], ours.text.as_str());
    assert_eq!(said["token_ids"], serde_json::json!(ours.token_ids));
    assert_eq!(said["completion_tokens"], ours.token_ids.len());
    assert_eq!(said["finish_reason"], FinishReason::Length as i32);
    assert_eq!(said["pair"], ours.complete.pair.as_str());
    assert!(said["chunks"].as_u64() > Some(1), "{said}");
}
