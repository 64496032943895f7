//! The status of a pair that is not loaded claims nothing.

use serde_json::Value;
use tandem_tests::grpc::{generate, request};
use tandem_tests::models;

use crate::home;
use crate::status_json;

#[tokio::test]
async fn what_is_not_known_of_a_pair_that_is_not_loaded_is_absent() {
    let files = models::default_pair();
    let home = home()
        .pair("only", &files.target, &files.draft)
        .config("preload = false");
    let daemon = home.start().await;
    let cold = status_json(&daemon);
    assert_eq!(
        (&cold["backend"], &cold["batch_invariant"]),
        (&Value::Null, &Value::Null)
    );
    let pair = &cold["pairs"][0];
    for key in ["context_length", "memory", "speculation"] {
        assert_eq!(pair[key], Value::Null, "{key}: {pair}");
    }
    for model in ["target", "draft"] {
        for key in [
            "name",
            "architecture",
            "quantization",
            "parameters",
            "weight_bytes",
            "mapped_bytes",
        ] {
            assert_eq!(pair[model][key], Value::Null, "{model}, {key}: {pair}");
        }
        assert!(pair[model]["source"].as_str().unwrap().ends_with(".gguf"));
    }
    let shown = daemon.tandem(&["status"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for claim in [
        "batch-invariant",
        " 0 M parameters",
        " 0 tokens",
        "on: ",
        "target 0 B",
    ] {
        assert!(!shown.contains(claim), "{claim:?} in {shown}");
    }
    assert!(
        shown.contains("not known before the pair is loaded"),
        "{shown}"
    );

    generate(&mut daemon.client().await, request("Hello", 4))
        .await
        .unwrap();
    let warm = status_json(&daemon);
    assert_eq!(warm["batch_invariant"], true);
    assert!(warm["pairs"][0]["context_length"].as_u64().unwrap() > 0);
    assert!(warm["pairs"][0]["target"]["parameters"].as_u64().unwrap() > 100_000_000);
    assert!(warm["pairs"][0]["speculation"].is_object());
}
